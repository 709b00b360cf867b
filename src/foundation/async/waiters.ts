// Callers that wait for a change: all are woken together, each at most once.

import { aborted, type Clock } from '../clock.ts';

export interface Waiters {
  readonly size: number;
  wakeAll(): void;
  /** Resolves at the next wake-up, or immediately if `isReady` is true; rejects when aborted. */
  wait(signal: AbortSignal, isReady: () => boolean): Promise<void>;
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
    wait(signal, isReady) {
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
        // Check after joining: a change in between wakes this caller.
        try {
          if (isReady()) wake();
        } catch (error) {
          leave();
          reject(error);
        }
      });
    },
  };
}

/** Resolves at the next wake-up or after `pollMs`: polling finds what a wake-up missed. */
export async function waitWithPoll(
  waiters: Waiters,
  {
    clock,
    pollMs,
    signal,
  }: { readonly clock: Clock; readonly pollMs: number; readonly signal: AbortSignal },
): Promise<void> {
  await waitForFirst(signal, [
    (first) => waiters.wait(first, () => false),
    (first) => clock.sleep(pollMs, first),
  ]);
}

/** Resolves when the first of these waits does, and ends the others. */
export async function waitForFirst(
  signal: AbortSignal,
  waits: readonly ((signal: AbortSignal) => Promise<void>)[],
): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  try {
    await Promise.race(waits.map((wait) => wait(either)));
  } finally {
    // The explicit reason avoids the slow creation of a default error with its stack.
    over.abort('over');
  }
}
