-- KEYS: key. ARGV: value, time to live in ms or ''. Sets the key if it has no value.
-- Returns the value of the key and its time to live.
local value, ttlMs = unpack(ARGV)
local current = redis.call('GET', KEYS[1])
if not current then
  if ttlMs == '' then redis.call('SET', KEYS[1], value)
  else redis.call('SET', KEYS[1], value, 'PX', ttlMs) end
  current = value
end
return {current, redis.call('PTTL', KEYS[1])}
