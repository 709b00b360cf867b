-- The registry is a sorted set of subjects by version; the empty subject has the highest version. A subject that
-- is registered while the registry is lost gets version 0, and the rebuild assigns its real version.
local function register(registry, subject)
  if redis.call('ZSCORE', registry, subject) then return end
  local version = 0
  if redis.call('ZSCORE', registry, '') then version = redis.call('ZINCRBY', registry, 1, '') end
  redis.call('ZADD', registry, version, subject)
end
-- The mark of a stream changes when the stream is deleted and created again, and scopes its message ids.
local function markOf(markKey, registry, subject)
  local mark = redis.call('GET', markKey)
  if mark then return mark end
  local time = redis.call('TIME')
  mark = time[1] .. '.' .. time[2]
  redis.call('SET', markKey, mark)
  if registry ~= '' then register(registry, subject) end
  return mark
end
