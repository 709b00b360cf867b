-- @include "registry"
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
