// The scripts of the sagas' index. Those of a tenant's slot keep the entries, those of the saga's slot
// when they are due; every key is declared.

import { redisScript } from './redis-script.ts';

export const sagaScripts = {
  /**
   * KEYS: the entries, what finds them by status. ARGV: stream, revision, status, entry. Returns the
   * entry that counts: an older one than is kept changes nothing.
   */
  put: redisScript(`local stream = ARGV[1]
local text = redis.call('HGET', KEYS[1], stream)
local status = ARGV[3]
if text then
  local kept = cjson.decode(text)
  if kept.revision >= tonumber(ARGV[2]) then
    redis.call('ZADD', KEYS[2], 0, kept.status .. ' ' .. stream)
    return text
  end
  if kept.status ~= status then redis.call('ZREM', KEYS[2], kept.status .. ' ' .. stream) end
end
redis.call('HSET', KEYS[1], stream, ARGV[4])
redis.call('ZADD', KEYS[2], 0, status .. ' ' .. stream)
return ARGV[4]`),
  /**
   * KEYS: entries, by status. ARGV: how many, from, below, then the statuses. Returns whether both
   * keys are there, and so many entries of each status: whoever asks puts them in order,
   * as Lua's order depends on where the server stands.
   */
  list: redisScript(`local found = {}
for at = 4, #ARGV do
  local bound = string.sub(ARGV[2], 1, 1)
  local from = bound .. ARGV[at] .. ' ' .. string.sub(ARGV[2], 2)
  local below = '(' .. ARGV[at] .. ' ' .. ARGV[3]
  local members = redis.call('ZRANGEBYLEX', KEYS[2], from, below, 'LIMIT', 0, ARGV[1])
  for _, member in ipairs(members) do
    local text = redis.call('HGET', KEYS[1], string.sub(member, #ARGV[at] + 2))
    if text then table.insert(found, text) end
  end
end
return {redis.call('EXISTS', KEYS[1], KEYS[2]) == 2 and 1 or 0, found}`),
  /**
   * KEYS: what is due, its revisions, the tenants. ARGV: stream, revision, time or nothing, tenant. A
   * revision is kept as long as its time: what comes late then takes no time away.
   */
  due: redisScript(`redis.call('SADD', KEYS[3], ARGV[4])
local kept = redis.call('HGET', KEYS[2], ARGV[1])
if kept and tonumber(kept) > tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
end
return 1`),
  /**
   * KEYS: the tenants, losses. ARGV: tenant. Once: whoever puts its entries again makes it known again,
   * and a tenant that has no sagas any more is not looked for for ever.
   */
  lost: redisScript(`if redis.call('SREM', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[2]) end
return 1`),
  /** KEYS: what is due, of each shard. ARGV: how many of each. */
  upcoming: redisScript(`local found = {}
for _, key in ipairs(KEYS) do
  local rows = redis.call('ZRANGEBYSCORE', key, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
  for _, cell in ipairs(rows) do table.insert(found, cell) end
end
return found`),
  /**
   * Whether a shard is whole stands among its times, at the end of time: it is lost with them.
   * KEYS: losses, what is due of each shard. ARGV: which servers.
   */
  marks: redisScript(`local mark = '!' .. ARGV[1] .. ' ' .. (redis.call('GET', KEYS[1]) or '0')
local found = {}
for at = 2, #KEYS do
  table.insert(found, redis.call('ZSCORE', KEYS[at], mark) and 1 or 0)
end
return found`),
  /** KEYS: losses, what is due of each shard. ARGV: the renewal's name. Returns the losses so far. */
  renew: redisScript(`for at = 2, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '+inf', '+inf')
  redis.call('ZADD', KEYS[at], '+inf', '!' .. ARGV[1])
end
return redis.call('GET', KEYS[1]) or '0'`),
  /** KEYS: what is due of each shard. ARGV: the renewal's name, which servers, losses. */
  renewed: redisScript(`for _, key in ipairs(KEYS) do
  if redis.call('ZREM', key, '!' .. ARGV[1]) == 1 then
    redis.call('ZADD', key, '+inf', '!' .. ARGV[2] .. ' ' .. ARGV[3])
  end
end
return 1`),
} as const;
