-- KEYS: state. ARGV: '1' or '0'. Returns 1 if the subscription exists.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'paused', ARGV[1])
return 1
