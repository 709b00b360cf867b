-- KEYS: processed events, their expiry times. ARGV: event id, duration of the claim, time until it expires.
-- Returns {'claimed', token}, {'done'} or {'busy', remaining milliseconds}.
-- @include "../../connection/scripts/now"
local eventId, leaseMs, ttlMs = unpack(ARGV)
local function field(name) return eventId .. ':' .. name end
local token, isDone, untilMs, expiresMs = unpack(redis.call('HMGET', KEYS[1],
  field('token'), field('done'), field('until'), field('expires')))
local isExpired = expiresMs and tonumber(expiresMs) <= now
if token and not isExpired then
  if isDone == '1' then return {'done'} end
  if tonumber(untilMs) > now then return {'busy', tonumber(untilMs) - now} end
end
token = tonumber(token or '0') + 1
local expires = string.format('%.0f', now + tonumber(ttlMs))
redis.call('HSET', KEYS[1], field('token'), token, field('done'), '0',
  field('until'), string.format('%.0f', now + tonumber(leaseMs)), field('expires'), expires)
redis.call('ZADD', KEYS[2], expires, eventId)
return {'claimed', token}
