// Those who wait until a subscription has got somewhere: each is woken once it may be there.

import type { Clock } from '../../foundation/clock.ts';
import type { Position } from '../../store/position.ts';
import { slept } from './deadline.ts';

export interface ProgressWaiters {
  readonly size: number;
  /** `reached`: what all of it has got to, if that is known here; else everybody has to look. */
  tell(reached: Position | undefined): void;
  /** Resolves when it is worth to look again, or the signal has fired. */
  wait(target: Position, signal: AbortSignal | undefined): Promise<void>;
}

interface Waiter {
  readonly target: Position;
  readonly look: () => void;
}

export function createProgressWaiters(clock: Clock, pollMs: number): ProgressWaiters {
  const waiters = new Set<Waiter>();
  let polling: AbortController | undefined;

  /** One for all of them: what other processes write down brings no wake-up. */
  async function poll(): Promise<void> {
    const end = new AbortController();
    polling = end;
    while (await slept(clock, pollMs, end.signal)) tell(undefined);
  }

  function tell(reached: Position | undefined): void {
    for (const { target, look } of waiters) if (reached === undefined || reached >= target) look();
  }

  return {
    get size() {
      return waiters.size;
    },
    tell,
    wait: (target, signal) =>
      new Promise((resolve) => {
        const look = (): void => {
          waiters.delete(waiter);
          signal?.removeEventListener('abort', look);
          if (waiters.size === 0) {
            polling?.abort('nobody waits');
            polling = undefined;
          }
          resolve();
        };
        const waiter = { target, look };
        waiters.add(waiter);
        if (polling === undefined) void poll();
        signal?.addEventListener('abort', look, { once: true });
        if (signal?.aborted === true) look();
      }),
  };
}
