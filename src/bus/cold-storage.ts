// The port of cold storage: named objects that are written once.

export interface ColdStorage {
  /**
   * Resolves when the object is complete and durable. False: with `ifAbsent`, an object of this name exists, and
   * nothing was written.
   */
  put(
    name: string,
    data: Uint8Array,
    options?: { readonly ifAbsent?: boolean | undefined },
  ): Promise<boolean>;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Names with this prefix, in order. */
  list(prefix: string): AsyncIterable<string>;
  /** Resolves also if the object does not exist. */
  remove(name: string): Promise<void>;
}
