// Keys shared by the workers of all processes: locks, markers, positions. The port is as small as Redis allows;
// everything else can be built on compare-and-set.

export interface KeyEntry {
  readonly value: string;
  /** The time to live; undefined: the key does not expire. */
  readonly expiresInMs: number | undefined;
}

export interface KeyOptions {
  /** When it expires, by the clock of the engine. Default: never. */
  readonly ttlMs?: number | undefined;
}

/**
 * Strings under keys, which may be lost at any time: data that must not be lost belongs in the event store.
 *
 * @example
 * import { openRedis } from 'millrace/engines/redis';
 *
 * await using redis = await openRedis('redis://localhost:6379');
 * const { keys } = redis;
 * const lock = await keys.putIfAbsent('orders:{core}:o-1:lock', 'worker-1', { ttlMs: 900_000 });
 * if (lock.value === 'worker-1') await keys.remove('orders:{core}:o-1:lock', 'worker-1');
 */
export interface KeyStore extends AsyncDisposable {
  get(key: string): Promise<KeyEntry | undefined>;
  /** Returns the value of the key afterwards: the new one, or the existing one. */
  putIfAbsent(key: string, value: string, options?: KeyOptions): Promise<KeyEntry>;
  /** False, without a change, unless the value was `from` (undefined: no value). */
  replace(
    key: string,
    change: { readonly from: string | undefined; readonly to: string } & KeyOptions,
  ): Promise<boolean>;
  /** False, without a change, unless the key had this value. */
  remove(key: string, value: string): Promise<boolean>;
}
