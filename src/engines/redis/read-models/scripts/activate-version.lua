-- KEYS: versions of a family. ARGV: version, time in milliseconds. Returns 0, without a change, unless it is ready.
local version, nowMs = unpack(ARGV)
if redis.call('HGET', KEYS[1], version .. ':status') ~= 'ready' then return 0 end
local before = redis.call('HGET', KEYS[1], 'active')
if before ~= version then
  redis.call('HSET', KEYS[1], 'active', version, version .. ':changedAtMs', nowMs, before .. ':changedAtMs', nowMs)
end
return 1
