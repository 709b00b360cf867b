-- KEYS: stream, mark.
-- ARGV: how long to remember ids, channel of the bus, registry or '', subject; then for each signal: id, id in the stream
-- or '', data.
-- Returns for each signal its id in the stream, and whether the stream already contained it (1 or 0).
-- @include "../../bus/scripts/include/registry"
local stream, markKey = KEYS[1], KEYS[2]
local rememberMs, channel, registry, subject = unpack(ARGV, 1, 4)
local mark = markOf(markKey, registry, subject)
local function exists(id)
  return id and id ~= '' and #redis.call('XRANGE', stream, id, id, 'COUNT', 1) > 0
end
local result, isStored = {}, false
for at = 5, #ARGV, 3 do
  local signalId, noted, data = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local idKey = markKey .. ':' .. mark .. ':' .. signalId
  local remembered = redis.call('GET', idKey)
  local id = exists(remembered) and remembered or exists(noted) and noted
  result[#result + 1] = id or redis.call('XADD', stream, '*', 'data', data)
  result[#result + 1] = id and 1 or 0
  if not id then
    isStored = true
    redis.call('SET', idKey, result[#result - 1], 'PX', rememberMs)
  end
end
if isStored then redis.call('PUBLISH', channel, 's ' .. subject) end
return result
