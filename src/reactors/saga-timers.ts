// Fires saga timers: polls the index for the next ones, sleeps until they are due, and stores that they
// fired. The handler of the saga's events decides what follows.

import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { sagaLimits } from './saga.ts';
import type { SagaIndex } from './saga-index.ts';

export interface SagaTimersOptions {
  readonly saga: string;
  readonly index: SagaIndex;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly pollMs: number;
  /** The shards that this process owns. */
  readonly shards: () => readonly number[];
  /** Stores which timers of the saga fired, and updates its index entry. */
  readonly fire: (stream: string) => Promise<void>;
}

export interface SagaTimers extends AsyncDisposable {
  /** Reports a timer that may be due before the current wake-up time. */
  note(dueAtMs: number): void;
}

export function startSagaTimers(options: SagaTimersOptions): SagaTimers {
  const { saga, index, clock, observer, pollMs } = options;
  const end = new AbortController();
  let nap = new AbortController();
  let wakeAtMs = Number.POSITIVE_INFINITY;
  let isFailing = false;

  /** Returns the time of the next poll. */
  async function poll(): Promise<number> {
    const shards = options.shards();
    const later = clock.now() + pollMs;
    if (shards.length === 0) return later;
    const fired = new Set<string>();
    for (;;) {
      const limit = sagaLimits.timersPerPoll;
      const upcoming = await index.upcoming({ saga, shards, limit });
      const due = upcoming.filter(({ dueAtMs }) => dueAtMs <= clock.now());
      const fresh = due.filter(({ stream }) => !fired.has(stream));
      for (const { stream } of fresh) {
        if (end.signal.aborted) return later;
        await options.fire(stream);
        fired.add(stream);
      }
      const next = upcoming[due.length];
      if (next !== undefined) return Math.min(later, next.dueAtMs);
      // The page contains only sagas fired in this poll, which have set another timer in the past.
      if (due.length < limit || fresh.length === 0) return later;
    }
  }

  async function run(): Promise<void> {
    while (!end.signal.aborted) {
      // Reset first, so a timer reported during the poll is not lost.
      wakeAtMs = Number.POSITIVE_INFINITY;
      nap = new AbortController();
      let atMs = clock.now() + pollMs;
      try {
        atMs = await poll();
        isFailing = false;
      } catch (err) {
        if (hasCode(err, 'STORE_CLOSED')) return;
        // Log only the first of consecutive failures.
        if (!isFailing) observer.log?.warn({ saga, err }, 'could not read saga timers');
        isFailing = true;
      }
      wakeAtMs = Math.min(wakeAtMs, atMs);
      const signal = AbortSignal.any([end.signal, nap.signal]);
      await clock.sleep(Math.max(0, wakeAtMs - clock.now()), signal).catch(() => undefined);
    }
  }

  const running = run();
  return {
    note(dueAtMs) {
      if (dueAtMs >= wakeAtMs) return;
      wakeAtMs = dueAtMs;
      nap.abort();
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await running;
    },
  };
}
