// Files that messages carry: the port, and what a file is kept with.

export interface AttachmentFacts {
  readonly name: string;
  readonly type: string;
  /** Whose quota it counts for. */
  readonly owner: string;
  readonly expiresAtMs: number;
}

export interface StoredAttachment extends AttachmentFacts {
  readonly size: number;
}

export interface AttachmentStore {
  /** Undefined: it is larger than that, and nothing of it is kept. */
  write(
    id: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly facts: AttachmentFacts; readonly bytesMax: number },
  ): Promise<number | undefined>;
  find(id: string): Promise<StoredAttachment | undefined>;
  read(id: string): AsyncIterable<Uint8Array>;
  remove(ids: readonly string[]): Promise<void>;
  /** Of what has not expired. */
  usage(owner: string): Promise<{ readonly owned: number; readonly total: number }>;
  /** Removes what has expired, and what was never finished. */
  sweep(): Promise<number>;
}
