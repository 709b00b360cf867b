// Keys that workers of all processes agree by: locks, marks that something was done, places in a line. The port
// is as small as Redis makes it; whoever needs more builds it of compare-and-set.

export interface KeyEntry {
  readonly value: string;
  /** Undefined: it does not expire. */
  readonly expiresInMs: number | undefined;
}

export interface KeyOptions {
  /** After which it is gone by itself, by the engine's own clock. Default: never. */
  readonly ttlMs?: number | undefined;
}

/**
 * Texts under keys, which may be lost at any time: what must not be lost is in the event store.
 *
 * @example
 * import { openKeyStore } from 'millrace/platform';
 *
 * await using keys = await openKeyStore('redis://localhost:6379');
 * const held = await keys.putIfAbsent('orders:{core}:o-1:lock', 'worker-1', { ttlMs: 900_000 });
 * if (held.value === 'worker-1') await keys.remove('orders:{core}:o-1:lock', 'worker-1');
 */
export interface KeyStore extends AsyncDisposable {
  get(key: string): Promise<KeyEntry | undefined>;
  /** Whatever the key holds afterwards: what was put, or what was there before. */
  putIfAbsent(key: string, value: string, options?: KeyOptions): Promise<KeyEntry>;
  /** False, and nothing was changed, unless it held `from` (undefined: nothing). */
  replace(
    key: string,
    change: { readonly from: string | undefined; readonly to: string } & KeyOptions,
  ): Promise<boolean>;
  /** False, and nothing was changed, unless it held this value. */
  remove(key: string, value: string): Promise<boolean>;
}
