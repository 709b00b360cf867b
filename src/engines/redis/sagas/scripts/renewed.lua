-- KEYS: due times of each shard. ARGV: id of the renewal, run ids of the servers, number of losses.
local renewal, servers, losses = unpack(ARGV)
for _, key in ipairs(KEYS) do
  if redis.call('ZREM', key, '!' .. renewal) == 1 then
    redis.call('ZADD', key, '+inf', '!' .. servers .. ' ' .. losses)
  end
end
return 1
