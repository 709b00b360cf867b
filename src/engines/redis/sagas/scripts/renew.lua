-- KEYS: losses, then the due times of each shard. ARGV: id of the renewal. Returns the total number of losses.
for at = 2, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '+inf', '+inf')
  redis.call('ZADD', KEYS[at], '+inf', '!' .. ARGV[1])
end
return redis.call('GET', KEYS[1]) or '0'
