// Breakers that processes share, in one hash of Redis: a field for each destination that is not closed. The
// server's clock decides, inside of scripts.

import type { BreakerStore } from '../../delivery/breaker-store.ts';
import { connectRedis, type RedisClient, type RedisConnectionOptions } from './redis-connection.ts';
import { luaNow, redisScript } from './redis-script.ts';

export interface RedisBreakerStoreOptions extends RedisConnectionOptions {
  /** Default: `millrace:breakers`. */
  readonly key?: string;
}

/** `until openings probeUntil holder` */
const luaRow = `${luaNow}
local function text(number) return string.format('%.0f', number) end
local row = redis.call('HGET', KEYS[1], ARGV[1]) or '0 0 0 '
local untilMs, openings, probeMs, holder = string.match(row, '^(%d+) (%d+) (%d+) (.*)$')
untilMs, openings, probeMs = tonumber(untilMs), tonumber(openings), tonumber(probeMs)`;

const scripts = {
  open: redisScript(`${luaRow}
local later = math.max(untilMs, now + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], ARGV[1], text(later) .. ' ' .. text(math.max(openings, tonumber(ARGV[3]))) .. ' 0 ')
return 1`),
  probe: redisScript(`${luaRow}
if untilMs == 0 then return 1 end
if now < untilMs or (now < probeMs and holder ~= ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1],
  text(untilMs) .. ' ' .. text(openings) .. ' ' .. text(now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
return 1`),
  close: redisScript(`${luaRow}
if holder == '' or holder ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])`),
  list: redisScript(`${luaNow}
local rows = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #rows, 2 do
  local untilMs, openings = string.match(rows[at + 1], '^(%d+) (%d+) ')
  table.insert(found, {rows[at], math.max(0, tonumber(untilMs) - now), tonumber(openings)})
end
return found`),
} as const;

/**
 * Shares the breakers of deliveries over Redis or a Redis Cluster, by its URL or with a client of your own.
 * While Redis is away each process goes on with its own.
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
      const rows = (await run(scripts.list, keys, [])) as [string, number, number][];
      return rows.map(([destination, openForMs, openings]) => ({
        destination,
        openForMs,
        openings,
      }));
    },
    async open(destination, { forMs, openings }) {
      await run(scripts.open, keys, [destination, Math.ceil(forMs), openings]);
    },
    async probe(destination, { holder, forMs }) {
      return (await run(scripts.probe, keys, [destination, holder, Math.ceil(forMs)])) === 1;
    },
    async close(destination, holder) {
      return (await run(scripts.close, keys, [destination, holder])) === 1;
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}
