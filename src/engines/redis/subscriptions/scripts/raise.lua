-- KEYS: leases. ARGV: shard, token. Returns 0, without a change, if an equal or higher token is in force.
if tonumber(redis.call('HGET', KEYS[1], ARGV[1] .. ':fence') or '0') >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1] .. ':fence', ARGV[2])
return 1
