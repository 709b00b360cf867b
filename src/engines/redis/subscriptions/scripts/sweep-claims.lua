-- KEYS: processed events, their expiry times. ARGV: limit. Returns the number of removed events.
-- @include "../../connection/scripts/now"
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
for _, eventId in ipairs(expired) do
  redis.call('HDEL', KEYS[1], eventId .. ':token', eventId .. ':done', eventId .. ':until', eventId .. ':expires')
  redis.call('ZREM', KEYS[2], eventId)
end
return #expired
