// Removes old rows of a table, in small batches.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';

interface SweeperOptions {
  /** For the log. */
  readonly what: string;
  /** Removes up to `limit` rows that are older than this. Returns how many. */
  readonly sweep: (before: Date, limit: number) => Promise<number>;
  /** Called after each batch. */
  readonly onSwept?: ((count: number) => void) | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly keptMs: number;
  /** Default: a minute. */
  readonly everyMs?: number | undefined;
}

const batch = 1_000;

export async function startSweeper({
  what,
  sweep,
  onSwept,
  clock,
  observer,
  keptMs,
  everyMs = 60_000,
}: SweeperOptions): Promise<AsyncDisposable> {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function sweepAll(): Promise<void> {
    const before = new Date(clock.now() - keptMs);
    let count = batch;
    while (count === batch && !signal.aborted) {
      count = await sweep(before, batch);
      if (count > 0) onSwept?.(count);
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await sweepAll();
        await clock.sleep(everyMs, signal);
      } catch (err) {
        if (signal.aborted) return;
        observer.log?.warn({ what, err }, 'sweep failed');
        await clock.sleep(everyMs, signal).catch(() => undefined);
      }
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
