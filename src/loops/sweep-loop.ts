// Background work at intervals, such as a sweep: a failed run is reported and does not end the following runs.

import { slept } from '../foundation/async/slept.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';

export interface SweepLoopOptions {
  /** The pause after each run. */
  readonly everyMs: number;
  readonly clock: Clock;
  /** Called for the first of consecutive failed runs, except while disposing. */
  readonly onFailure: (error: unknown) => void;
  /** Called for the first successful run after failed ones. */
  readonly onRecovered?: (() => void) | undefined;
}

/**
 * Runs `work` immediately and after each pause, until it is disposed or its engine is closed. Disposing waits for a
 * running `work`.
 */
export function sweepLoop(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, clock, onFailure, onRecovered }: SweepLoopOptions,
): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    let isFailing = false;
    while (!signal.aborted) {
      try {
        await work(signal);
        if (isFailing) onRecovered?.();
        isFailing = false;
      } catch (error) {
        if (signal.aborted || isClosed(error)) return;
        if (!isFailing) onFailure(error);
        isFailing = true;
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
