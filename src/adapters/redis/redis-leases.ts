// Leases in Redis: a hash for each subscription that never expires, so that tokens go on growing
// whatever becomes of their leases. The server's clock decides, inside of scripts.

import { redisKeys } from '../../contracts/redis-keys.ts';
import type { LeaseStore } from '../../subscriptions/subscription-storage.ts';
import { connectRedis, type RedisClient, type RedisConnectionOptions } from './redis-connection.ts';
import { luaNow, redisScript } from './redis-script.ts';

export interface RedisLeases extends LeaseStore, AsyncDisposable {}

const scripts = {
  acquire: redisScript(`${luaNow}
local shard = ARGV[1]
local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':until')
local left = tonumber(row[2] or '0') - now
if left > 0 then return {0, left} end
local token = math.max(tonumber(row[1] or '0'), tonumber(ARGV[4])) + 1
redis.call('HSET', KEYS[1], shard .. ':token', string.format('%.0f', token),
  shard .. ':owner', ARGV[2], shard .. ':until', string.format('%.0f', now + tonumber(ARGV[3])))
return {1, token}`),
  /** Late is not lost, as long as nobody else took it; what was released has no end any more. */
  renew: redisScript(`${luaNow}
local shard = ARGV[1]
local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':until')
if row[1] ~= ARGV[2] or row[2] == '0' then return 0 end
redis.call('HSET', KEYS[1], shard .. ':until', string.format('%.0f', now + tonumber(ARGV[3])))
return 1`),
  release: redisScript(`local shard = ARGV[1]
if redis.call('HGET', KEYS[1], shard .. ':token') == ARGV[2] then
  redis.call('HSET', KEYS[1], shard .. ':until', '0')
end
return 0`),
  list: redisScript(`${luaNow}
local rows = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #rows, 2 do
  local shard = string.match(rows[at], '^(%d+):until$')
  if shard and rows[at + 1] ~= '0' then
    local owner = redis.call('HGET', KEYS[1], shard .. ':owner')
    table.insert(found, {tonumber(shard), owner, math.max(0, tonumber(rows[at + 1]) - now)})
  end
end
return found`),
  announce: redisScript(`${luaNow}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
return redis.call('ZRANGE', KEYS[1], 0, -1)`),
} as const;

/**
 * Leases in one Redis or a Redis Cluster, by its URL or with a client of your own. Give them to
 * `startSubscription` as `leases`.
 *
 * @example
 * import { redisLeases } from 'millrace/adapters/redis';
 *
 * await using leases = await redisLeases('redis://localhost:6379');
 * const key = { subscription: 'sub:core-lookup:currency-projection:v1', shard: 0 };
 * const lease = await leases.acquire(key, 'worker-1', 10_000);
 * if (lease.kind === 'acquired') console.log(lease.token);
 */
export async function redisLeases(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<RedisLeases> {
  const connection = await connectRedis(target, options);
  const { run } = connection;
  const shards = (subscription: string): string[] => [redisKeys.lease(subscription, 'shards')];
  const workers = (subscription: string): string[] => [redisKeys.lease(subscription, 'workers')];
  return {
    async acquire({ subscription, shard }, owner, ttlMs, { above = 0 } = {}) {
      const values = [shard, owner, ttlMs, above];
      const answer = (await run(scripts.acquire, shards(subscription), values)) as number[];
      const [isAcquired, number = 0] = answer;
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
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
