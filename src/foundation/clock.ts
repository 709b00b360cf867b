// Time as a port: the core never reads the machine's clock or sets a timer itself.

import { MillraceError } from './error.ts';

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Resolves after `ms`; rejects with `ABORTED` as soon as the signal fires. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest delay of a timer, about 25 days. */
export const sleepMsMax = 2_147_483_647;

/**
 * The machine's clock.
 *
 * @example
 * import { systemClock } from 'millrace/foundation';
 *
 * const stopping = new AbortController();
 * await systemClock.sleep(10, stopping.signal);
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep(ms, signal) {
    if (signal?.aborted === true) return Promise.reject(aborted(signal));
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(withoutStack(() => aborted(signal)));
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  },
};

/**
 * The error of a cancelled wait, with the signal's reason as its cause.
 *
 * @example
 * import { aborted } from 'millrace/foundation';
 *
 * const failIfStopped = (signal: AbortSignal) => {
 *   if (signal.aborted) throw aborted(signal);
 * };
 */
export function aborted(signal?: AbortSignal): MillraceError {
  return new MillraceError('ABORTED', 'the wait was cancelled', { cause: signal?.reason });
}

/** The stack would show the canceller instead of the waiter, and is slow to create. */
function withoutStack<T>(make: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
