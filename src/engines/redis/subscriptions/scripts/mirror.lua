-- KEYS: checkpoint of the naming document, its number of changes. ARGV: number of changes, checkpoint as JSON.
-- The keys of a subscription are in another slot, so the copy is written after them, and never replaces a newer one.
if tonumber(redis.call('GET', KEYS[2]) or '-1') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[1])
return 1
