// Lazy opening of a resource that several callers share.

/** Calls `open` at the first call and shares its result; after a failure, the next call tries again. */
export function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined;
  return () => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
}
