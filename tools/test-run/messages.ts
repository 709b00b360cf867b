// What a test worker reports to the runner.

export type WorkerMessage =
  | { readonly kind: 'started'; readonly title: string }
  | { readonly kind: 'passed'; readonly title: string }
  | { readonly kind: 'skipped'; readonly title: string; readonly reason: string }
  /** A failure without a title concerns the file, not one of its tests. */
  | { readonly kind: 'failed'; readonly title?: string; readonly error: string }
  | { readonly kind: 'done' };

/** What the runner requests from a test worker: to run a test file, or to end. */
export type WorkerRequest = { readonly file: string } | { readonly end: true };
