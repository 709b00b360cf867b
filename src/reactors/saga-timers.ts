// Fires the timers of sagas: asks the index for the next ones, sleeps until then, writes down that
// they fired. What follows is decided where the saga's events are handled.

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
  /** Those that this process owns. */
  readonly shards: () => readonly number[];
  /** Writes down which timers of the saga fired, and brings its entry up to date. */
  readonly fire: (stream: string) => Promise<void>;
}

export interface SagaTimers extends AsyncDisposable {
  /** Something is due at this time: sooner, perhaps, than what is slept for. */
  note(dueAtMs: number): void;
}

export function startSagaTimers(options: SagaTimersOptions): SagaTimers {
  const { saga, index, clock, observer, pollMs } = options;
  const end = new AbortController();
  let napping = new AbortController();
  let wakeAtMs = Number.POSITIVE_INFINITY;
  let isAway = false;

  /** Returns when to look again. */
  async function look(): Promise<number> {
    const shards = options.shards();
    const later = clock.now() + pollMs;
    if (shards.length === 0) return later;
    const fired = new Set<string>();
    for (;;) {
      const limit = sagaLimits.timersPerLook;
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
      // A page of those that were fired a moment ago: they set the next timer into the past.
      if (due.length < limit || fresh.length === 0) return later;
    }
  }

  async function run(): Promise<void> {
    while (!end.signal.aborted) {
      // Whatever is noted while we look is looked at again.
      wakeAtMs = Number.POSITIVE_INFINITY;
      napping = new AbortController();
      let atMs = clock.now() + pollMs;
      try {
        atMs = await look();
        isAway = false;
      } catch (err) {
        if (hasCode(err, 'STORE_CLOSED')) return;
        // Once, however long it takes.
        if (!isAway) observer.log?.warn({ saga, err }, 'timers of the saga cannot be read');
        isAway = true;
      }
      wakeAtMs = Math.min(wakeAtMs, atMs);
      const signal = AbortSignal.any([end.signal, napping.signal]);
      await clock.sleep(Math.max(0, wakeAtMs - clock.now()), signal).catch(() => undefined);
    }
  }

  const running = run();
  return {
    note(dueAtMs) {
      if (dueAtMs >= wakeAtMs) return;
      wakeAtMs = dueAtMs;
      napping.abort();
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await running;
    },
  };
}
