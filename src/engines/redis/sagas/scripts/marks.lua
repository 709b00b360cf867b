-- KEYS: losses, then the due times of each shard. ARGV: run ids of the servers. Returns 1 for each complete shard.
-- The mark of a complete shard is a member of its due times with an infinite score, and is lost together with them.
local mark = '!' .. ARGV[1] .. ' ' .. (redis.call('GET', KEYS[1]) or '0')
local found = {}
for at = 2, #KEYS do
  table.insert(found, redis.call('ZSCORE', KEYS[at], mark) and 1 or 0)
end
return found
