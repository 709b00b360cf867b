// Circuit breakers shared by processes, in one Redis hash with a field for each destination whose breaker is
// not closed. Scripts compare times with the server's clock.

import type { BreakerStore } from '../../../delivery/breaker-store.ts';
import {
  connectRedis,
  type RedisClient,
  type RedisConnectionOptions,
} from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';

export interface RedisBreakerStoreOptions extends RedisConnectionOptions {
  /** Default: `millrace:breakers`. */
  readonly key?: string | undefined;
}

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'openBreaker',
  'probeBreaker',
  'closeBreaker',
  'listBreakers',
]);

/**
 * Shares the breakers of deliveries over Redis or a Redis Cluster, by its URL or with a client of your own.
 * While Redis is unreachable, each process uses separate breakers.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { redisBreakerStore } from 'millrace/adapters/redis';
 *
 * await using breakers = await redisBreakerStore('redis://localhost:6379');
 * const { deliver } = createDelivery({ destinations: { audit: async () => {} }, breakers });
 */
export async function redisBreakerStore(
  target: string | RedisClient,
  options: RedisBreakerStoreOptions = {},
): Promise<BreakerStore & AsyncDisposable> {
  const keys = [options.key ?? 'millrace:breakers'];
  const connection = await connectRedis(target, options);
  const { run } = connection;
  return {
    async list() {
      const rows = (await run(scripts.listBreakers, keys, [])) as [string, number, number][];
      return rows.map(([destination, openForMs, openings]) => ({
        destination,
        openForMs,
        openings,
      }));
    },
    async open(destination, { forMs, openings }) {
      await run(scripts.openBreaker, keys, [destination, Math.ceil(forMs), openings]);
    },
    async probe(destination, { holder, forMs }) {
      return (await run(scripts.probeBreaker, keys, [destination, holder, Math.ceil(forMs)])) === 1;
    },
    async close(destination, holder) {
      return (await run(scripts.closeBreaker, keys, [destination, holder])) === 1;
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
