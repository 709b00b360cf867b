// What a test worker reports to the runner.

export type WorkerMessage =
  | { readonly kind: 'started'; readonly title: string }
  | { readonly kind: 'passed'; readonly title: string }
  | { readonly kind: 'skipped'; readonly title: string; readonly reason: string }
  /** Without a title: a fault of the file, not of one of its tests. */
  | { readonly kind: 'failed'; readonly title?: string; readonly error: string }
  | { readonly kind: 'done' };

/** What the runner asks of a test worker: a test file, or to end once nothing is left open. */
export type WorkerRequest = { readonly file: string } | { readonly end: true };
