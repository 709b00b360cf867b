// The messages between a test worker and the runner.

export type WorkerMessage =
  | { readonly kind: 'started'; readonly title: string }
  | { readonly kind: 'passed'; readonly title: string }
  | { readonly kind: 'skipped'; readonly title: string; readonly reason: string }
  /** A failure without a title concerns the file, not one of its tests. */
  | { readonly kind: 'failed'; readonly title?: string; readonly error: string }
  /** A diagnostic of a test that passed, such as a table of results. */
  | { readonly kind: 'noted'; readonly text: string }
  | { readonly kind: 'done' };

/** A request of the runner to a test worker: run a test file, or exit. */
export type WorkerRequest = { readonly file: string } | { readonly end: true };
