-- KEYS: shards. ARGV: shard, token.
local shard, token = unpack(ARGV)
if redis.call('HGET', KEYS[1], shard .. ':token') == token then
  redis.call('HSET', KEYS[1], shard .. ':until', '0')
end
return 0
