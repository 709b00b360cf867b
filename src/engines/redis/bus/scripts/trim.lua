-- KEYS: stream. ARGV: lowest id to keep or '', maximum entries or '', maximum bytes or '', native groups.
-- Returns how many entries were removed, and how many were kept because a group has not acked them.
-- @include "include/ids"
-- @include "include/stream-info"
local stream = KEYS[1]
local lowestKept, lengthMax, bytesMax = ARGV[1], ARGV[2], ARGV[3]
if redis.call('TYPE', stream).ok ~= 'stream' then return {0, 0} end
local highestId = '18446744073709551615-18446744073709551615'
-- The lowest entry that some group has not acked.
local unacked
local function keepFrom(id)
  if id and (not unacked or padded(id) < padded(unacked)) then unacked = id end
end
local function firstFrom(from)
  local entry = redis.call('XRANGE', stream, from, '+', 'COUNT', 1)[1]
  return entry and entry[1]
end
local groups = groupsOf(stream)
for at = 4, #ARGV do
  local fields = groups[ARGV[at]]
  if not fields then keepFrom(firstFrom('-'))
  else
    if fields.pending > 0 then keepFrom(redis.call('XPENDING', stream, ARGV[at])[2]) end
    keepFrom(firstFrom('(' .. fields['last-delivered-id']))
  end
end
-- The id that follows the oldest `count` entries.
local function idAfter(count)
  local from = '-'
  while true do
    local entries = redis.call('XRANGE', stream, from, '+', 'COUNT', math.min(count + 1, 1000))
    if #entries > count then return entries[count + 1][1] end
    if #entries == 0 then return highestId end
    count = count - #entries
    from = '(' .. entries[#entries][1]
  end
end
local function unackedBelow(id)
  local count, from = 0, unacked
  while true do
    local entries = redis.call('XRANGE', stream, from, '(' .. id, 'COUNT', 1000)
    count = count + #entries
    if #entries < 1000 then return count end
    from = '(' .. entries[#entries][1]
  end
end
local function trimTo(id)
  if unacked and padded(unacked) < padded(id) then
    return redis.call('XTRIM', stream, 'MINID', unacked), unackedBelow(id)
  end
  return redis.call('XTRIM', stream, 'MINID', id), 0
end
local target
if lowestKept ~= '' then target = lowestKept end
if lengthMax ~= '' then
  local excess = redis.call('XLEN', stream) - tonumber(lengthMax)
  local id = excess > 0 and idAfter(excess)
  if id and (not target or padded(target) < padded(id)) then target = id end
end
local removed, heldBack = 0, 0
if target then removed, heldBack = trimTo(target) end
while bytesMax ~= '' and heldBack == 0 do
  local length, bytes, most = redis.call('XLEN', stream), bytesOf(stream), tonumber(bytesMax)
  if length == 0 or bytes <= most then break end
  local more
  more, heldBack = trimTo(idAfter(math.max(1, math.ceil(length * (1 - most / bytes)))))
  removed = removed + more
end
return {removed, heldBack}
