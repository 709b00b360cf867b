// A clock that only a test moves, so tests do not wait in real time.

import { aborted, type Clock } from '../foundation/clock.ts';

export interface FakeClock extends Clock {
  /** Moves time forward and wakes all sleepers that are due, in order. */
  advance(ms: number): Promise<void>;
  /** The number of current sleepers. */
  readonly sleepers: number;
}

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/**
 * A clock that the test controls.
 *
 * @example
 * import { fakeClock } from 'millrace/testing';
 *
 * const clock = fakeClock({ nowMs: 0 });
 * const slept = clock.sleep(1_000);
 * await clock.advance(1_000);
 * await slept;
 */
export function fakeClock(options: { readonly nowMs?: number } = {}): FakeClock {
  let nowMs = options.nowMs ?? Date.UTC(2025, 8, 30, 10);
  const sleepers = new Set<Sleeper>();

  return {
    now: () => nowMs,
    get sleepers() {
      return sleepers.size;
    },
    sleep(ms, signal) {
      if (signal?.aborted === true) return Promise.reject(aborted(signal));
      return new Promise((resolve, reject) => {
        const onAbort = (): void => {
          sleepers.delete(sleeper);
          reject(aborted(signal));
        };
        const sleeper: Sleeper = {
          dueMs: nowMs + ms,
          wake: () => {
            sleepers.delete(sleeper);
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort, { once: true });
      });
    },
    async advance(ms) {
      const untilMs = nowMs + ms;
      for (;;) {
        const next = earliest(sleepers, untilMs);
        if (next === undefined) break;
        nowMs = Math.max(nowMs, next.dueMs);
        next.wake();
        // The woken sleeper runs before the next one, and may sleep again within this advance.
        await new Promise(setImmediate);
      }
      nowMs = untilMs;
    },
  };
}

function earliest(sleepers: ReadonlySet<Sleeper>, untilMs: number): Sleeper | undefined {
  let found: Sleeper | undefined;
  for (const sleeper of sleepers) {
    if (sleeper.dueMs <= untilMs && (found === undefined || sleeper.dueMs < found.dueMs)) {
      found = sleeper;
    }
  }
  return found;
}
