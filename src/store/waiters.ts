// Those who wait for new events: woken together, each at most once, and forgotten when they leave.

import { aborted } from '../foundation/clock.ts';

export interface Waiters {
  readonly size: number;
  wakeAll(): void;
  /** Resolves at the next wake-up, or at once when `isThere` already holds; rejects when aborted. */
  wait(signal: AbortSignal, isThere: () => boolean): Promise<void>;
}

export function createWaiters(): Waiters {
  const waiting = new Set<() => void>();
  return {
    get size() {
      return waiting.size;
    },
    wakeAll() {
      for (const wake of waiting) wake();
    },
    wait(signal, isThere) {
      if (signal.aborted) return Promise.reject(aborted(signal));
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          waiting.delete(wake);
          signal.removeEventListener('abort', onAbort);
        };
        const wake = (): void => {
          leave();
          resolve();
        };
        const onAbort = (): void => {
          leave();
          reject(aborted(signal));
        };
        waiting.add(wake);
        signal.addEventListener('abort', onAbort, { once: true });
        // Looked at after joining: what commits in between wakes us.
        try {
          if (isThere()) wake();
        } catch (error) {
          leave();
          reject(error);
        }
      });
    },
  };
}
