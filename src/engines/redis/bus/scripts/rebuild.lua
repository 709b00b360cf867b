-- KEYS: registry. ARGV: subjects of all streams.
-- The current time is the new version. It exceeds all earlier versions, so every reader reads the whole registry again.
-- @include "../../connection/scripts/now"
for _, subject in ipairs(ARGV) do redis.call('ZADD', KEYS[1], now, subject) end
for _, subject in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('ZADD', KEYS[1], now, subject)
end
redis.call('ZADD', KEYS[1], now, '')
return now
