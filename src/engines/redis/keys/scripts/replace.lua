-- KEYS: key. ARGV: whether the key must have a value (1 or 0), that value, new value, time to live in ms or ''.
-- Returns 1 if replaced.
local mustExist, expected, value, ttlMs = unpack(ARGV)
local current = redis.call('GET', KEYS[1])
if mustExist == '0' and current then return 0 end
if mustExist == '1' and current ~= expected then return 0 end
if ttlMs == '' then redis.call('SET', KEYS[1], value)
else redis.call('SET', KEYS[1], value, 'PX', ttlMs) end
return 1
