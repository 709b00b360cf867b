// A wait that ends with the caller's signal or a timeout.

import { aborted, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { slept } from '../../foundation/async/slept.ts';
import { projectionLimits } from '../projection.ts';

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** The wait fails with `WAIT_TIMEOUT` after this time. Default: 30 s. */
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
  // A string as reason, because creating an error with its stack is slow.
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
      throw new MillraceError(
        'WAIT_TIMEOUT',
        `${what} did not reach the position within ${timeoutMs} ms`,
        {
          details: { what, timeoutMs },
        },
      );
    }
    throw isCancelled() ? aborted(signal) : error;
  } finally {
    signal?.removeEventListener('abort', end);
    end();
    await expired;
  }
}
