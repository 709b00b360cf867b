-- KEYS: letters, ids of the letters. ARGV: id of the letter, notes. Returns 0 if the letter does not exist.
local eventId = redis.call('HGET', KEYS[2], ARGV[1])
if not eventId then return 0 end
redis.call('HSET', KEYS[1], eventId .. ':notes', ARGV[2])
return 1
