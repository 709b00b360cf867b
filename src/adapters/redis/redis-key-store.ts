// Keys in Redis, as they are named: what others read there is what was put.

import type { KeyEntry, KeyStore } from '../../work/key-store.ts';
import { connectRedis, type RedisClient, type RedisConnectionOptions } from './redis-connection.ts';
import { redisScript } from './redis-script.ts';

/** KEYS: the key. ARGV: value, ttl in ms or ''. What it holds afterwards, and for how long. */
const putScript = redisScript(`
local held = redis.call('GET', KEYS[1])
if not held then
  if ARGV[2] == '' then redis.call('SET', KEYS[1], ARGV[1])
  else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
  held = ARGV[1]
end
return {held, redis.call('PTTL', KEYS[1])}`);

/** KEYS: the key. ARGV: 1 and what it holds, or 0 and '' for nothing; the new value, ttl in ms or ''. */
const replaceScript = redisScript(`
local held = redis.call('GET', KEYS[1])
if ARGV[1] == '0' and held then return 0 end
if ARGV[1] == '1' and held ~= ARGV[2] then return 0 end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
return 1`);

const readScript = redisScript(`return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}`);

const removeScript = redisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`);

/**
 * Keys in one Redis or a Redis Cluster, by its URL or with a client of your own.
 *
 * @example
 * import { redisKeyStore } from 'millrace/adapters/redis';
 *
 * await using keys = await redisKeyStore('redis://localhost:6379');
 * const { value } = await keys.putIfAbsent('orders:{core}:o-1:lock', 'worker-1', { ttlMs: 900_000 });
 */
export async function redisKeyStore(
  target: string | RedisClient,
  options: RedisConnectionOptions = {},
): Promise<KeyStore> {
  const connection = await connectRedis(target, options);
  return {
    async get(key) {
      const [value, ttl] = (await connection.run(readScript, [key], [])) as [string | null, number];
      return value === null ? undefined : entryOf(value, ttl);
    },
    async putIfAbsent(key, value, { ttlMs } = {}) {
      const found = await connection.run(putScript, [key], [value, wholeMs(ttlMs)]);
      const [held, ttl] = found as [string, number];
      return entryOf(held, ttl);
    },
    async replace(key, { from, to, ttlMs }) {
      const values = [from === undefined ? 0 : 1, from ?? '', to, wholeMs(ttlMs)];
      return (await connection.run(replaceScript, [key], values)) === 1;
    },
    remove: async (key, value) => (await connection.run(removeScript, [key], [value])) === 1,
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

function entryOf(value: string, ttl: number): KeyEntry {
  return { value, expiresInMs: ttl < 0 ? undefined : ttl };
}

function wholeMs(ttlMs: number | undefined): string {
  return ttlMs === undefined ? '' : String(Math.max(1, Math.ceil(ttlMs)));
}
