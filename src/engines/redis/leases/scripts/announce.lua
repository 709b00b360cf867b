-- KEYS: workers. ARGV: worker, how long it counts as alive. Returns the names of all live workers.
-- @include "../../connection/scripts/now"
local worker, ttlMs = unpack(ARGV)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ttlMs)), worker)
return redis.call('ZRANGE', KEYS[1], 0, -1)
