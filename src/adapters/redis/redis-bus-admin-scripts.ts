// Groups and streams of the bus from outside, in Lua.

import { luaIds } from './redis-bus-scripts.ts';
import { redisScript } from './redis-script.ts';

const luaForget = `local function forget(leases, fences, stream)
  local members = redis.call('ZRANGE', leases, 0, -1)
  for _, member in ipairs(members) do
    if string.sub(member, 1, #stream + 1) == stream .. ' ' then
      redis.call('ZREM', leases, member)
      redis.call('HDEL', fences, member)
    end
  end
end`;

/** What the entries hold and a little for each, from some of both ends: Redis frees memory by blocks. */
const luaBytes = `local function bytesOf(stream)
  local length = redis.call('XLEN', stream)
  local some = redis.call('XRANGE', stream, '-', '+', 'COUNT', 20)
  if length > 20 then
    local rest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', math.min(20, length - 20))
    for _, entry in ipairs(rest) do some[#some + 1] = entry end
  end
  local bytes = 0
  for _, entry in ipairs(some) do
    bytes = bytes + 32
    for _, text in ipairs(entry[2]) do bytes = bytes + #text end
  end
  return #some > 0 and math.ceil(bytes * length / #some) or 0
end`;

export const busAdminScripts = {
  /** KEYS: groups, generations; ARGV: group, filters, record of a new one, lease, most pending. */
  ensureGroup: redisScript(`local there = redis.call('HGET', KEYS[1], ARGV[1])
if not there then
  local generation = redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
  there = generation .. ' ' .. ARGV[3]
  redis.call('HSET', KEYS[1], ARGV[1], there)
  return there
end
local record = cjson.decode(string.match(there, '^%d+ (.*)$'))
if record.filters ~= ARGV[2] then return there end
local leaseMs, most = tonumber(ARGV[4]), tonumber(ARGV[5])
if record.leaseMs ~= leaseMs or record.maxAckPending ~= most then
  record.leaseMs, record.maxAckPending = leaseMs, most
  there = string.match(there, '^%d+ ') .. cjson.encode(record)
  redis.call('HSET', KEYS[1], ARGV[1], there)
end
return there`),

  /** The group stands in every stream that was there. KEYS: groups; ARGV: group, generation. */
  groupPlaced: redisScript(`local there = redis.call('HGET', KEYS[1], ARGV[1])
if not there or string.match(there, '^%d+') ~= ARGV[2] then return 0 end
local record = cjson.decode(string.match(there, '^%d+ (.*)$'))
record.isPlaced = true
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. cjson.encode(record))
return 1`),

  /** KEYS: stream, leases, fences; ARGV: what, native group, id to begin behind. */
  place: redisScript(`${luaForget}
local stream, native = KEYS[1], ARGV[2]
if ARGV[1] ~= 'place' then
  forget(KEYS[2], KEYS[3], stream)
  redis.pcall('XGROUP', 'DESTROY', stream, native)
end
if ARGV[1] == 'drop' then
  if redis.call('ZCARD', KEYS[2]) == 0 then redis.call('DEL', KEYS[2], KEYS[3]) end
elseif redis.call('EXISTS', stream) == 1 then
  redis.pcall('XGROUP', 'CREATE', stream, native, ARGV[3])
end
return 1`),

  /** KEYS: stream; ARGV: native groups. Answers length, first id, last id, bytes, then lag and pending of each. */
  info: redisScript(`${luaBytes}
local stream = KEYS[1]
if redis.call('TYPE', stream).ok ~= 'stream' then return false end
local length = redis.call('XLEN', stream)
local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
local function behind(id)
  local count, from = 0, '(' .. id
  while true do
    local some = redis.call('XRANGE', stream, from, '+', 'COUNT', 1000)
    count = count + #some
    if #some < 1000 then return count end
    from = '(' .. some[#some][1]
  end
end
local groups = {}
for _, row in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local fields = {}
  for at = 1, #row, 2 do fields[row[at]] = row[at + 1] end
  groups[fields.name] = fields
end
local answer = {length, first and first[1] or '', last and last[1] or '', bytesOf(stream)}
for _, native in ipairs(ARGV) do
  local fields = groups[native]
  answer[#answer + 1] = fields and (fields.lag or behind(fields['last-delivered-id'])) or length
  answer[#answer + 1] = fields and fields.pending or 0
end
return answer`),

  /** KEYS: stream; ARGV: lowest id to keep, most entries, most bytes (each or nothing), native groups. */
  trim: redisScript(`${luaIds}
${luaBytes}
local stream = KEYS[1]
if redis.call('TYPE', stream).ok ~= 'stream' then return {0, 0} end
local last = '18446744073709551615-18446744073709551615'
local held
local function hold(id)
  if id and (not held or padded(id) < padded(held)) then held = id end
end
local function firstFrom(from)
  local entry = redis.call('XRANGE', stream, from, '+', 'COUNT', 1)[1]
  return entry and entry[1]
end
local there = {}
for _, row in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local fields = {}
  for at = 1, #row, 2 do fields[row[at]] = row[at + 1] end
  there[fields.name] = fields
end
for at = 4, #ARGV do
  local fields = there[ARGV[at]]
  if not fields then hold(firstFrom('-'))
  else
    if fields.pending > 0 then hold(redis.call('XPENDING', stream, ARGV[at])[2]) end
    hold(firstFrom('(' .. fields['last-delivered-id']))
  end
end
local function behind(count)
  local from = '-'
  while true do
    local some = redis.call('XRANGE', stream, from, '+', 'COUNT', math.min(count + 1, 1000))
    if #some > count then return some[count + 1][1] end
    if #some == 0 then return last end
    count = count - #some
    from = '(' .. some[#some][1]
  end
end
local function heldBelow(wanted)
  local count, from = 0, held
  while true do
    local some = redis.call('XRANGE', stream, from, '(' .. wanted, 'COUNT', 1000)
    count = count + #some
    if #some < 1000 then return count end
    from = '(' .. some[#some][1]
  end
end
local function cut(wanted)
  if held and padded(held) < padded(wanted) then
    return redis.call('XTRIM', stream, 'MINID', held), heldBelow(wanted)
  end
  return redis.call('XTRIM', stream, 'MINID', wanted), 0
end
local wanted
if ARGV[1] ~= '' then wanted = ARGV[1] end
if ARGV[2] ~= '' then
  local over = redis.call('XLEN', stream) - tonumber(ARGV[2])
  local id = over > 0 and behind(over)
  if id and (not wanted or padded(wanted) < padded(id)) then wanted = id end
end
local removed, kept = 0, 0
if wanted then removed, kept = cut(wanted) end
while ARGV[3] ~= '' and kept == 0 do
  local length, bytes = redis.call('XLEN', stream), bytesOf(stream)
  local most = tonumber(ARGV[3])
  if length == 0 or bytes <= most then break end
  local more
  more, kept = cut(behind(math.max(1, math.ceil(length * (1 - most / bytes)))))
  removed = removed + more
end
return {removed, kept}`),

  /** KEYS: stream, mark, then leases and fences of its groups. */
  deleteStream: redisScript(`${luaForget}
for at = 3, #KEYS, 2 do forget(KEYS[at], KEYS[at + 1], KEYS[1]) end
redis.call('DEL', KEYS[2])
return redis.call('DEL', KEYS[1])`),
} as const;
