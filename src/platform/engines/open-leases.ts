// Leases outside of the store's database, by URL. Only the adapter of the chosen engine is loaded.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';

export interface OpenLeasesOptions {
  readonly observer?: Observer;
  /** Time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number;
}

const redisSchemes = ['redis', 'rediss', 'redis+cluster', 'rediss+cluster'];
const natsSchemes = ['nats', 'nats+tls', 'tls'];
const known = [...redisSchemes, ...natsSchemes];

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
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme !== undefined && redisSchemes.includes(scheme)) {
    const { redisLeases } = await import('../../engines/redis/index.ts');
    return redisLeases(url, options);
  }
  if (scheme !== undefined && natsSchemes.includes(scheme)) {
    const { natsLeases } = await import('../../engines/nats/index.ts');
    return natsLeases(url, options);
  }
  throw unknownScheme(scheme);
}

/** Quotes only the scheme of the URL, because the rest may contain a password. */
function unknownScheme(scheme: string | undefined): MillraceError {
  const list = known.map((name) => `${name}:`).join(', ');
  const near = scheme === undefined ? undefined : closest(scheme, known);
  const hint = near === undefined ? '' : ` Did you mean ${near}:?`;
  const message =
    scheme === undefined
      ? `the URL of leases begins with one of ${list} (redis://localhost:6379)`
      : `there are no leases in '${scheme}:'; there are ${list}.${hint}`;
  return new MillraceError('CONFIG_INVALID', message, { details: { field: 'leases' } });
}
