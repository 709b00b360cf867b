// Keeps the ledger small: what was sent long ago is forgotten, a little at a time.

import type { Clock } from '../foundation/clock.ts';
import type { Observer } from '../foundation/observer.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';

interface SweeperOptions {
  readonly clock: Clock;
  readonly observer: Observer;
  /** Sent ones are kept for this long. */
  readonly keptMs: number;
  /** Default: a minute. */
  readonly everyMs?: number;
}

const batch = 1_000;

export async function startOutboxSweeper(
  ledger: OutboxLedger,
  { clock, observer, keptMs, everyMs = 60_000 }: SweeperOptions,
): Promise<AsyncDisposable> {
  const stopping = new AbortController();
  const { signal } = stopping;

  async function sweep(): Promise<void> {
    const before = new Date(clock.now() - keptMs);
    let count = batch;
    while (count === batch && !signal.aborted) {
      count = await ledger.purge(before, batch);
      if (count > 0) observer.count?.('outbox_purged_total', {}, count);
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        await sweep();
        await clock.sleep(everyMs, signal);
      } catch (err) {
        if (signal.aborted) return;
        observer.log?.warn({ err }, 'the outbox could not be swept');
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
