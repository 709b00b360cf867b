// Waits for an abort signal. `util.aborted` of Node is not a substitute: it holds its listener weakly, so a
// wait that nothing else refers to is collected and never ends.

import { aborted as abortError } from '../clock.ts';

export interface AbortWait extends Disposable {
  /** Resolves when the signal fires; stays pending after the wait is disposed. */
  readonly aborted: Promise<void>;
}

/** Dispose the wait when the signal outlives it: that removes the listener. */
export function whenAborted(signal: AbortSignal): AbortWait {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const onAbort = (): void => resolve();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', onAbort, { once: true });
  return { aborted, [Symbol.dispose]: () => signal.removeEventListener('abort', onAbort) };
}

/** Waits for the work, or rejects with `ABORTED` when the signal fires. The work itself is not stopped. */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return work;
  if (signal.aborted) throw abortError(signal);
  using wait = whenAborted(signal);
  const abort = wait.aborted.then(() => {
    throw abortError(signal);
  });
  return await Promise.race([work, abort]);
}
