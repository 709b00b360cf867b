-- KEYS: leases, state, marks. ARGV: shard, token, checkpoint or '', positions of the processed events.
-- Returns 'duplicate' without a change, or the number of changes and the lowest position.
-- @include "include/fenced"
-- @include "include/checkpoint"
for at = 4, #ARGV do
  if redis.call('ZSCORE', KEYS[3], ARGV[at]) then return 'duplicate' end
end
for at = 4, #ARGV do redis.call('ZADD', KEYS[3], ARGV[at], ARGV[at]) end
-- Keep the marks below the checkpoint too, because a retry after a lost response must find them.
if ARGV[3] ~= '' then moveCheckpoint(ARGV[1], ARGV[3]) end
return checkpoint()
