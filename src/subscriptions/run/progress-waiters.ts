// Callers that wait until a subscription reaches a position.

import type { Clock } from '../../foundation/clock.ts';
import type { Position } from '../../store/position.ts';
import { slept } from '../../foundation/async/slept.ts';

export interface ProgressWaiters {
  readonly size: number;
  /** Wakes the waiters up to `reached`, or all of them if the position is unknown here. */
  notify(reached: Position | undefined): void;
  /** Resolves when the caller should check again, or when the signal fires. */
  wait(target: Position, signal: AbortSignal | undefined): Promise<void>;
}

interface Waiter {
  readonly target: Position;
  readonly wake: () => void;
}

export function createProgressWaiters(clock: Clock, pollMs: number): ProgressWaiters {
  const waiters = new Set<Waiter>();
  let polling: AbortController | undefined;

  /** One timer for all waiters, because the progress of other processes sends no notification. */
  async function poll(): Promise<void> {
    const end = new AbortController();
    polling = end;
    while (await slept(clock, pollMs, end.signal)) notify(undefined);
  }

  function notify(reached: Position | undefined): void {
    for (const { target, wake } of waiters) if (reached === undefined || reached >= target) wake();
  }

  return {
    get size() {
      return waiters.size;
    },
    notify,
    wait: (target, signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          waiters.delete(waiter);
          signal?.removeEventListener('abort', wake);
          if (waiters.size === 0) {
            polling?.abort('no waiters');
            polling = undefined;
          }
          resolve();
        };
        const waiter = { target, wake };
        waiters.add(waiter);
        if (polling === undefined) void poll();
        signal?.addEventListener('abort', wake, { once: true });
        if (signal?.aborted === true) wake();
      }),
  };
}
