// Waiting for a signal that outlives the wait: the listener leaves with the waiter.

export interface AbortWait {
  readonly aborted: Promise<void>;
  /** Forgets the wait; its promise stays unsettled. */
  leave(): void;
}

export function whenAborted(signal: AbortSignal): AbortWait {
  let leave = (): void => undefined;
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    const onAbort = (): void => resolve();
    leave = () => signal.removeEventListener('abort', onAbort);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  return { aborted, leave };
}
