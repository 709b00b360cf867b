// Removes old rows of a table, in small batches.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import { sweepLoop } from '../loops/sweep-loop.ts';

interface SweeperOptions {
  /** The name in log lines. */
  readonly what: string;
  /** Removes up to `limit` rows that are older than this. Returns how many. */
  readonly sweep: (before: Date, limit: number) => Promise<number>;
  /** Called after each batch. */
  readonly onSwept?: ((count: number) => void) | undefined;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly keptMs: number;
}

const batch = 1_000;
const everyMs = 60_000;

export async function startSweeper({
  what,
  sweep,
  onSwept,
  clock,
  observer,
  keptMs,
}: SweeperOptions): Promise<AsyncDisposable> {
  async function sweepAll(signal: AbortSignal): Promise<void> {
    const before = new Date(clock.now() - keptMs);
    let count = batch;
    while (count === batch && !signal.aborted) {
      count = await sweep(before, batch);
      if (count > 0) onSwept?.(count);
    }
  }

  return sweepLoop(sweepAll, {
    everyMs,
    clock,
    onFailure: (err) => observer.log?.warn({ what, err }, 'sweep failed'),
  });
}
