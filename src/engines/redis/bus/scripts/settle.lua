-- KEYS: leases, fences.
-- ARGV: native group, channel, group, lease duration, registry or ''; then for each settlement: kind, stream, id, fence,
-- delay. A dead-lettered message adds the values of its dead letter: stream, mark, subject, dedupe window, id, data, meta.
-- Returns the number of pending messages, and whether each lease was still valid (1 or 0).
-- @include "../../connection/scripts/now"
-- @include "include/store"
-- @include "include/ids"
local leases, fences = KEYS[1], KEYS[2]
local native, channel, group, leaseMs, registry = unpack(ARGV, 1, 5)
local rows, result, settled, acks, freed = {}, {}, {}, {}, {}
local function countOf(member, fence)
  if rows[member] == nil then rows[member] = redis.call('HGET', fences, member) end
  local current, count = string.match(rows[member] or '', '^(%d+) (%d+)$')
  return current == fence and tonumber(count) or nil
end
local function free(member, key, count, atMs)
  redis.call('ZADD', leases, atMs, member)
  rows[member] = '0 ' .. count
  redis.call('HSET', fences, member, rows[member])
  freed[key] = true
end
local function ack(member, key, id)
  rows[member] = false
  settled[#settled + 1] = member
  acks[key] = acks[key] or {}
  table.insert(acks[key], id)
end
local at = 6
while at <= #ARGV do
  local kind, key, id, fence, delay = unpack(ARGV, at, at + 4)
  local member = key .. ' ' .. padded(id)
  local count = countOf(member, fence)
  if count then
    if kind == 'ack' then ack(member, key, id)
    elseif kind == 'nack' then
      delay = tonumber(delay)
      free(member, key, count, delay > 0 and now + delay or 0)
    elseif kind == 'release' then free(member, key, count - 1, 0)
    elseif kind == 'extend' then redis.call('ZADD', leases, now + tonumber(leaseMs), member)
    elseif kind == 'dead' then
      local stream, mark, subject, windowMs, letterId, data, meta = unpack(ARGV, at + 5, at + 11)
      local idKey = mark .. ':' .. markOf(mark, registry, subject) .. ':' .. letterId
      store(stream, idKey, windowMs, data, meta)
      redis.call('PUBLISH', channel, 's ' .. subject)
      ack(member, key, id)
    end
  end
  result[#result + 1] = count and 1 or 0
  at = at + (kind == 'dead' and 12 or 5)
end
if #settled > 0 then
  redis.call('ZREM', leases, unpack(settled))
  redis.call('HDEL', fences, unpack(settled))
  for key, ids in pairs(acks) do redis.pcall('XACK', key, native, unpack(ids)) end
  if redis.call('HDEL', fences, '#full') == 1 then redis.call('PUBLISH', channel, 'g ' .. group) end
end
local message = {'g', group}
for key in pairs(freed) do message[#message + 1] = key end
if #message > 2 then redis.call('PUBLISH', channel, table.concat(message, ' ')) end
return {redis.call('ZCARD', leases), result}
