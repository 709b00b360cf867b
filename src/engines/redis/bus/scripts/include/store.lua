-- @include "../../../connection/scripts/now"
-- @include "registry"
-- The mark of a stream changes when the stream is deleted and created again, and scopes its message ids.
local function markOf(markKey, registry, subject)
  local mark = redis.call('GET', markKey)
  if mark then return mark end
  mark = time[1] .. '.' .. time[2]
  redis.call('SET', markKey, mark)
  if registry ~= '' then register(registry, subject) end
  return mark
end
-- Returns the id of the entry, and 1 if an earlier entry has the same message id.
local function store(stream, idKey, windowMs, data, meta)
  local earlier = redis.call('GET', idKey)
  if earlier then return earlier, 1 end
  local id
  if meta == '' then id = redis.call('XADD', stream, '*', 'data', data)
  else id = redis.call('XADD', stream, '*', 'data', data, 'meta', meta) end
  redis.call('SET', idKey, id, 'PX', windowMs)
  return id, 0
end
