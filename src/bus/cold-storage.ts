// Where archives go: named objects that are written once.

export interface ColdStorage {
  /**
   * Resolves when the object is safe: whole and synced, or not there at all. False: `ifAbsent` was asked
   * for, and there is one of this name; nothing was written.
   */
  put(
    name: string,
    data: Uint8Array,
    options?: { readonly ifAbsent?: boolean | undefined },
  ): Promise<boolean>;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Names that begin so, in order. */
  list(prefix: string): AsyncIterable<string>;
  /** Also of one that is not there. */
  remove(name: string): Promise<void>;
}
