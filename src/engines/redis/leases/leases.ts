// Leases in Redis. Each subscription has a hash that never expires, so that tokens keep growing after their
// leases expire. Scripts compare times with the server's clock.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import type { LeaseStore } from '../../../subscriptions/subscription-storage.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { pairsOf } from '../connection/engine.ts';
import { loadScripts } from '../connection/script.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'acquire',
  'renew',
  'release',
  'list',
  'announce',
]);

/** `fences`: the storage of the subscriptions is in this Redis, so a new owner also gets the fence of its writes. */
export function redisLeases(
  connection: RedisConnection,
  { fences = false }: { readonly fences?: boolean | undefined } = {},
): LeaseStore {
  const { run } = connection;
  const shards = (subscription: string): string[] => [redisKeys.lease(subscription, 'shards')];
  const workers = (subscription: string): string[] => [redisKeys.lease(subscription, 'workers')];
  return {
    async acquire({ subscription, shard }, owner, ttlMs, { above = 0 } = {}) {
      const values = [shard, owner, ttlMs, above, fences ? 1 : 0];
      const reply = (await run(scripts.acquire, shards(subscription), values)) as number[];
      const [isAcquired, number = 0] = reply;
      return isAcquired === 1
        ? { kind: 'acquired', token: number }
        : { kind: 'held', retryInMs: number };
    },
    async renew({ subscription, shard, token }, ttlMs) {
      return (await run(scripts.renew, shards(subscription), [shard, token, ttlMs])) === 1;
    },
    async release({ subscription, shard, token }) {
      await run(scripts.release, shards(subscription), [shard, token]);
    },
    async list(subscription) {
      const rows = (await run(scripts.list, shards(subscription), [])) as [
        number,
        string,
        number,
      ][];
      return rows
        .map(([shard, owner, remainingMs]) => ({ shard, owner, remainingMs }))
        .toSorted((a, b) => a.shard - b.shard);
    },
    async announce(subscription, worker, ttlMs) {
      const names = await run(scripts.announce, workers(subscription), [worker, ttlMs]);
      return (names as string[]).toSorted();
    },
    async leave(subscription, worker) {
      const [key = ''] = workers(subscription);
      await connection.ask((client) => client.zrem(key, worker));
    },
    async workers(subscription) {
      const [key = ''] = workers(subscription);
      const [seconds, micros] = await connection.ask((client) => client.time());
      const cells = await connection.ask((client) => client.zrange(key, 0, -1, 'WITHSCORES'));
      const nowMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
      return pairsOf(cells)
        .map(([worker, expiresAtMs]) => ({ worker, remainingMs: Number(expiresAtMs) - nowMs }))
        .filter(({ remainingMs }) => remainingMs > 0)
        .toSorted((a, b) => (a.worker < b.worker ? -1 : 1));
    },
  };
}
