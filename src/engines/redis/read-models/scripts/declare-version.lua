-- KEYS: versions of a family. ARGV: version, projection, target position or '', time in milliseconds.
-- The first version of a family becomes active. Returns all fields.
local version, projection, target, nowMs = unpack(ARGV)
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('HSET', KEYS[1], 'active', version) end
if redis.call('HSETNX', KEYS[1], version .. ':status', 'building') == 1 then
  redis.call('HSET', KEYS[1], version .. ':projection', projection, version .. ':target', target,
    version .. ':changedAtMs', nowMs)
end
return redis.call('HGETALL', KEYS[1])
