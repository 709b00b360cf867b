// Coalesces calls: at most one run is active and one is pending.

/**
 * Wraps `run` so that every call gets a run that started after the call; calls during an active run share the
 * next one.
 */
export function coalesce(run: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): Promise<void> => {
    next = undefined;
    current = run().finally(() => {
      current = undefined;
    });
    return current;
  };

  return () => {
    if (current === undefined) return next ?? start();
    // A failure of the active run concerns only the callers that wait for it.
    next ??= current.then(start, start);
    return next;
  };
}
