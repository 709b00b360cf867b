// Waits for an abort signal. `util.aborted` of Node is no substitute: it holds its listener weakly, so a
// wait that nothing else refers to is collected and never ends.

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
