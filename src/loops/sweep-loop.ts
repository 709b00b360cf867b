// Background work at intervals, such as a sweep: a failed run is reported and does not end the following runs.

import { slept } from '../foundation/async/slept.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';

export interface SweepLoopOptions {
  /** The pause after each run. */
  readonly everyMs: number;
  readonly clock: Clock;
  /** Called for a failed run, except while disposing, and not again while the same error repeats. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Runs `work` immediately and after each pause, until it is disposed or its engine is closed. Disposing waits for a
 * running `work`.
 */
export function sweepLoop(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, clock, onFailure }: SweepLoopOptions,
): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    let reported: string | undefined;
    while (!signal.aborted) {
      try {
        await work(signal);
        reported = undefined;
      } catch (error) {
        if (signal.aborted || isClosed(error)) return;
        if (reported !== String(error)) onFailure(error);
        reported = String(error);
      }
      await slept(clock, everyMs, signal);
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

const isClosed = (error: unknown): boolean =>
  hasCode(error, 'STORE_CLOSED') || hasCode(error, 'BUS_CLOSED') || hasCode(error, 'TASKS_CLOSED');
