// Work that serves everyone who asked before it began: at most one run goes on and one waits.

/**
 * Wraps `run` so that each call gets a run that began after it; calls that come while one goes on
 * share the next.
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
    // Whether the one before failed is the business of those who waited for it.
    next ??= current.then(start, start);
    return next;
  };
}
