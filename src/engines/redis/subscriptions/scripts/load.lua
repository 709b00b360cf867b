-- KEYS: state, marks, blocked. ARGV: shard.
-- Returns whether the state exists, the position (or false), the marks above it, and the blocked streams.
local position = redis.call('HGET', KEYS[1], ARGV[1] .. ':position')
return {
  redis.call('HEXISTS', KEYS[1], 'shards'),
  position,
  redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. (position or '-1'), '+inf'),
  redis.call('ZRANGE', KEYS[3], 0, -1),
}
