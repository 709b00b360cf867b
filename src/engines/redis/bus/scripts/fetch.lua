-- KEYS: leases, fences, then the streams to read.
-- ARGV: native group, limit, lease duration, most pending messages, hash of group records or '', group, generation,
-- whether to restore lost leases from the pending entries of Redis (1 or 0).
-- Returns the number of pending messages, milliseconds until the next lease expires (-1: no lease), whether each
-- stream may have more, and the messages. Returns {-1} if the group was deleted.
--
-- The hash of fences holds `<fence> <delivery count>` for each lease, the last fence (`#`), and a flag that the group
-- reached its limit (`#full`). Fences start with the time, so that fences of lost leases are not reused.
-- @include "../../connection/scripts/now"
-- @include "include/ids"
-- Limits of the entries per read and of the bytes per reply: a message may have a megabyte.
local STEP_MAX, BYTES_MAX = 8, 8000000
local leases, fences = KEYS[1], KEYS[2]
local native, limit, leaseMs, pendingMax, records, group, generation, restores = unpack(ARGV)
limit = tonumber(limit)
local untilMs = now + tonumber(leaseMs)
if records ~= '' then
  local record = redis.call('HGET', records, group)
  if not record or string.match(record, '^%d+') ~= generation then return {-1} end
end
while true do
  local expired = redis.call('ZRANGEBYSCORE', leases, 1, now, 'LIMIT', 0, 1000)
  if #expired == 0 then break end
  local free = {}
  for at, member in ipairs(expired) do free[at * 2 - 1] = 0 free[at * 2] = member end
  redis.call('ZADD', leases, unpack(free))
end
if restores == '1' and redis.call('EXISTS', leases) == 0 then
  for at = 3, #KEYS do
    local pending = redis.pcall('XPENDING', KEYS[at], native, '-', '+', 1000)
    for _, row in ipairs(pending.err and {} or pending) do
      local member = KEYS[at] .. ' ' .. padded(row[1])
      redis.call('ZADD', leases, 0, member)
      redis.call('HSET', fences, member, '0 ' .. row[4])
    end
  end
end
local found, leaseRows, members, deleted, bytes = {}, {}, {}, {}, 0
local function deliver(key, entry, member, count)
  bytes = bytes + #(entry[2][2] or '')
  found[#found + 1] = {key, entry[1], 0, count, entry[2]}
  leaseRows[#leaseRows + 1] = untilMs
  leaseRows[#leaseRows + 1] = member
  members[#members + 1] = member
end
local function redeliver(key, batch, ids)
  local claimed = redis.pcall('XCLAIM', key, native, 'bus', 0, unpack(ids))
  local entries = {}
  if not claimed.err then
    for _, entry in ipairs(claimed) do if entry and entry[2] then entries[entry[1]] = entry end end
  end
  for at, id in ipairs(ids) do
    local entry = entries[id]
    if entry then
      local count = string.match(redis.call('HGET', fences, batch[at]) or '', ' (%d+)$') or 0
      deliver(key, entry, batch[at], tonumber(count) + 1)
    else deleted[#deleted + 1] = batch[at] end
  end
end
local batchKey, batch, batchIds
for _, member in ipairs(redis.call('ZRANGEBYSCORE', leases, 0, 0, 'LIMIT', 0, limit)) do
  local key, id = parseMember(member)
  if key ~= batchKey or #batchIds == STEP_MAX then
    if batchKey then redeliver(batchKey, batch, batchIds) end
    batchKey, batch, batchIds = key, {}, {}
    if bytes > BYTES_MAX then batchKey = nil break end
  end
  batch[#batch + 1] = member
  batchIds[#batchIds + 1] = id
end
if batchKey then redeliver(batchKey, batch, batchIds) end
if #deleted > 0 then
  redis.call('ZREM', leases, unpack(deleted))
  redis.call('HDEL', fences, unpack(deleted))
end
local pendingRoom = tonumber(pendingMax) - redis.call('ZCARD', leases)
local room = math.min(limit - #found, pendingRoom)
local mayHaveMore = {}
for at = 3, #KEYS do
  local key = KEYS[at]
  local more = 1
  while more == 1 and room > 0 and bytes < BYTES_MAX do
    local step = math.min(room, STEP_MAX)
    local read = redis.pcall('XREADGROUP', 'GROUP', native, 'bus', 'COUNT', step, 'STREAMS', key, '>')
    if read and read.err and redis.call('EXISTS', key) == 1 then
      if not redis.pcall('XGROUP', 'CREATE', key, native, 0).err then
        read = redis.call('XREADGROUP', 'GROUP', native, 'bus', 'COUNT', step, 'STREAMS', key, '>')
      end
    end
    local entries = read and not read.err and read[1][2] or {}
    for _, entry in ipairs(entries) do deliver(key, entry, key .. ' ' .. padded(entry[1]), 1) end
    if #entries < step then more = 0 end
    room = room - #entries
  end
  mayHaveMore[#mayHaveMore + 1] = more
end
if #found > 0 then
  redis.call('HSETNX', fences, '#', now)
  local lastFence = redis.call('HINCRBY', fences, '#', #found)
  local rows = {}
  for at, entry in ipairs(found) do
    entry[3] = lastFence - #found + at
    rows[at * 2 - 1] = members[at]
    rows[at * 2] = entry[3] .. ' ' .. entry[4]
  end
  redis.call('ZADD', leases, unpack(leaseRows))
  redis.call('HSET', fences, unpack(rows))
end
if pendingRoom <= 0 then redis.call('HSET', fences, '#full', 1) end
local nextAtMs = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
local nextMs = nextAtMs and math.max(0, tonumber(nextAtMs) - now) or -1
return {redis.call('ZCARD', leases), nextMs, mayHaveMore, found}
