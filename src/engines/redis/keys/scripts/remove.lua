-- KEYS: key. ARGV: expected value. Returns 1 if removed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
