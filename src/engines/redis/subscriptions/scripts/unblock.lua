-- KEYS: leases, state, marks, blocked, waiting. ARGV: shard, token, stream. Returns 0 while events of the stream wait.
-- @include "include/fenced"
if redis.call('ZLEXCOUNT', KEYS[5], '[' .. ARGV[3] .. '\0', '(' .. ARGV[3] .. '\1') > 0 then return 0 end
redis.call('ZREM', KEYS[4], ARGV[3])
return 1
