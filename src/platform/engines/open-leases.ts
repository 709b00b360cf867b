// Leases outside of the store's database, by URL. Only the adapter of the chosen engine is loaded.

import type { Observer } from '../../foundation/observer.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';
import { engineOf } from './store-url.ts';

export interface OpenLeasesOptions {
  readonly observer?: Observer | undefined;
  /** Time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Opens the leases at a URL, for the `leases` of `startSubscription`: `redis://user:password@host:6379/0`, `rediss:`
 * with TLS, `redis+cluster://a:6379,b:6379` (or `?cluster`), `nats://host:4222`, `nats+tls:`. Rejects with
 * `CONFIG_INVALID`, `DRIVER_MISSING`, or `STORE_UNAVAILABLE` if the server is unreachable; later it reconnects.
 *
 * @example
 * import { openEventStore, openLeases } from 'millrace/platform';
 * import { memorySubscriptionStorage, startSubscription, subscription } from 'millrace/subscriptions';
 *
 * await using store = await openEventStore('sqlite:.millrace/events.db');
 * await using leases = await openLeases('redis://localhost:6379');
 * const log = subscription({ name: 'sub:demo:log:v1', handler: ({ type }) => console.log(type) });
 * await using runner = await startSubscription(store, log, {
 *   storage: memorySubscriptionStorage(),
 *   leases,
 * });
 */
export async function openLeases(
  url: string,
  options: OpenLeasesOptions = {},
): Promise<LeaseStore & AsyncDisposable> {
  return engineOf('leases', url, ['redis', 'nats']) === 'redis'
    ? (await import('../../engines/redis/index.ts')).redisLeases(url, options)
    : (await import('../../engines/nats/index.ts')).natsLeases(url, options);
}
