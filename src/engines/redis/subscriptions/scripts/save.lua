-- KEYS: leases, state, marks. ARGV: shard, token, position. Returns the number of changes and the lowest position.
-- @include "include/fenced"
-- @include "include/checkpoint"
moveCheckpoint(ARGV[1], ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[3])
return checkpoint()
