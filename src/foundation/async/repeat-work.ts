// Background work at intervals, such as a sweep: a failed run is reported and does not end the following runs.

import type { Clock } from '../clock.ts';

export interface RepeatOptions {
  /** The pause after each run. */
  readonly everyMs: number;
  readonly clock: Clock;
  /** Called for each failed run, except while disposing. `stop` ends the repetition. */
  readonly onFailure: (error: unknown, stop: () => void) => void;
}

/** Runs `work` immediately and after each pause, until it is disposed. Disposing waits for a running `work`. */
export function repeatWork(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, clock, onFailure }: RepeatOptions,
): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await work(signal);
      } catch (error) {
        if (!signal.aborted) onFailure(error, () => stopping.abort());
      }
      // The sleep rejects only when the work is disposed, which ends the loop.
      await clock.sleep(everyMs, signal).catch(() => undefined);
    }
  }

  const done = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
    },
  };
}
