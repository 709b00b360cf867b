// A wait with an end: what the caller says, or the time that it gives.

import { aborted, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { slept } from '../../subscriptions/run/deadline.ts';
import { projectionLimits } from '../limits.ts';

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Then: `WAIT_TIMEOUT`. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
}

export async function waitWithTimeout<T>(
  what: string,
  { signal, timeoutMs = projectionLimits.waitMs, clock }: WaitOptions & { readonly clock: Clock },
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const isCancelled = (): boolean => signal?.aborted === true;
  if (isCancelled()) throw aborted(signal);
  const ending = new AbortController();
  // A reason of its own: to make one, with its stack, takes longer than the rest.
  const end = (): void => ending.abort('over');
  signal?.addEventListener('abort', end, { once: true });
  let isLate = false;
  const expire = async (): Promise<void> => {
    isLate = await slept(clock, timeoutMs, ending.signal);
    end();
  };
  const expired = expire();
  try {
    return await wait(ending.signal);
  } catch (error) {
    if (isLate) {
      throw new MillraceError('WAIT_TIMEOUT', `${what} was not there within ${timeoutMs} ms`, {
        details: { what, timeoutMs },
      });
    }
    throw isCancelled() ? aborted(signal) : error;
  } finally {
    signal?.removeEventListener('abort', end);
    end();
    await expired;
  }
}
