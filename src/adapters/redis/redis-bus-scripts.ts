// The bus in Lua: streams, and what stands beside them, change together or not at all.
//
// A lease is a member of a sorted set, `<stream key> <padded id>`, scored by when it is over; 0: free to
// be handed out, in the order of the text. Its fence and count stand in a hash: `<fence> <count>`.

import { luaNow, redisScript } from './redis-script.ts';

export const luaIds = `local function padded(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #seq) .. seq
end
local function parts(member)
  local key, ms, seq = string.match(member, '^(.*) 0*(%d+)%-0*(%d+)$')
  return key, ms .. '-' .. seq
end`;

/** So many entries of a stream at once, and so much in one answer: messages may have a megabyte each. */
const stepMax = 32;
const bytesMax = 8_000_000;

/** Version 0 while nobody has counted: whoever rebuilds the registry counts those, too. */
export const luaRegister = `local function register(registry, subject)
  if redis.call('ZSCORE', registry, subject) then return end
  local version = 0
  if redis.call('ZSCORE', registry, '') then version = redis.call('ZINCRBY', registry, 1, '') end
  redis.call('ZADD', registry, version, subject)
end`;

const luaStore = `${luaNow}
${luaRegister}
local function markOf(mark, registry, subject)
  local value = redis.call('GET', mark)
  if value then return value end
  value = time[1] .. '.' .. time[2]
  redis.call('SET', mark, value)
  if registry ~= '' then register(registry, subject) end
  return value
end
local function store(stream, idKey, window, data, meta)
  local known = redis.call('GET', idKey)
  if known then return known, 1 end
  local id
  if meta == '' then id = redis.call('XADD', stream, '*', 'data', data)
  else id = redis.call('XADD', stream, '*', 'data', data, 'meta', meta) end
  redis.call('SET', idKey, id, 'PX', window)
  return id, 0
end`;

export const busScripts = {
  register: redisScript(`${luaRegister}
for _, subject in ipairs(ARGV) do register(KEYS[1], subject) end
return redis.call('ZSCORE', KEYS[1], '')`),

  /** Above every version so far, so that whoever knows an older one reads all anew. */
  rebuild: redisScript(`${luaNow}
for _, subject in ipairs(ARGV) do redis.call('ZADD', KEYS[1], now, subject) end
for _, subject in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('ZADD', KEYS[1], now, subject)
end
redis.call('ZADD', KEYS[1], now, '')
return now`),

  /**
   * KEYS: stream, mark, stream, mark, …; ARGV: window, channel, registry or nothing, whether they are
   * registered, the subjects, then of each entry the number of its stream, id, data, meta. False: a
   * stream is new, and is to be registered first.
   */
  append: redisScript(`${luaStore}
local streams = #KEYS / 2
local marks = {}
if ARGV[3] == '' and ARGV[4] == '0' then
  for at = 1, streams do
    if redis.call('EXISTS', KEYS[at * 2]) == 0 then return false end
  end
end
for at = 1, streams do
  marks[at] = KEYS[at * 2] .. ':' .. markOf(KEYS[at * 2], ARGV[3], ARGV[4 + at]) .. ':'
end
local answer, stored, woken = {}, {}, {'s'}
for at = 5 + streams, #ARGV, 4 do
  local number = tonumber(ARGV[at])
  local id, known = store(KEYS[number * 2 - 1], marks[number] .. ARGV[at + 1], ARGV[1], ARGV[at + 2], ARGV[at + 3])
  answer[#answer + 1] = id
  answer[#answer + 1] = known
  if known == 0 and not stored[number] then
    stored[number] = true
    woken[#woken + 1] = ARGV[4 + number]
  end
end
if #woken > 100 then woken = {'s', '*'} end
if #woken > 1 then redis.call('PUBLISH', ARGV[2], table.concat(woken, ' ')) end
return answer`),

  /**
   * KEYS: leases, fences, streams to look at; ARGV: native group, limit, lease, how many may be out, the
   * hash of records or nothing, group, generation, whether to look for what Redis has as pending and no
   * lease knows, as somebody lost the leases. Answers how many are out, when the next one is free, what
   * each stream may have left, and the messages; -1: the group is gone. Fences begin with the time, so
   * that those of leases that were lost never come again.
   */
  fetch: redisScript(`${luaNow}
${luaIds}
local leases, fences, native = KEYS[1], KEYS[2], ARGV[1]
local limit, untilMs = tonumber(ARGV[2]), now + tonumber(ARGV[3])
if ARGV[5] ~= '' then
  local record = redis.call('HGET', ARGV[5], ARGV[6])
  if not record or string.match(record, '^%d+') ~= ARGV[7] then return {-1} end
end
while true do
  local over = redis.call('ZRANGEBYSCORE', leases, 1, now, 'LIMIT', 0, 1000)
  if #over == 0 then break end
  local free = {}
  for at, member in ipairs(over) do free[at * 2 - 1] = 0 free[at * 2] = member end
  redis.call('ZADD', leases, unpack(free))
end
if ARGV[8] == '1' and redis.call('EXISTS', leases) == 0 then
  for at = 3, #KEYS do
    local lost = redis.pcall('XPENDING', KEYS[at], native, '-', '+', 1000)
    for _, row in ipairs(lost.err and {} or lost) do
      local member = KEYS[at] .. ' ' .. padded(row[1])
      redis.call('ZADD', leases, 0, member)
      redis.call('HSET', fences, member, '0 ' .. row[4])
    end
  end
end
local found, lease, counts, gone, bytes = {}, {}, {}, {}, 0
local function hand(key, entry, member, count)
  bytes = bytes + #(entry[2][2] or '')
  found[#found + 1] = {key, entry[1], 0, count, entry[2]}
  lease[#lease + 1] = untilMs
  lease[#lease + 1] = member
  counts[#counts + 1] = member
end
local function again(key, members, ids)
  local claimed = redis.pcall('XCLAIM', key, native, 'bus', 0, unpack(ids))
  local there = {}
  if not claimed.err then
    for _, entry in ipairs(claimed) do if entry and entry[2] then there[entry[1]] = entry end end
  end
  for at, id in ipairs(ids) do
    local entry = there[id]
    if entry then
      local count = string.match(redis.call('HGET', fences, members[at]) or '', ' (%d+)$') or 0
      hand(key, entry, members[at], tonumber(count) + 1)
    else gone[#gone + 1] = members[at] end
  end
end
local free = redis.call('ZRANGEBYSCORE', leases, 0, 0, 'LIMIT', 0, limit)
local run, runMembers, runIds
for _, member in ipairs(free) do
  local key, id = parts(member)
  if key ~= run or #runIds == ${stepMax} then
    if run then again(run, runMembers, runIds) end
    run, runMembers, runIds = key, {}, {}
    if bytes > ${bytesMax} then run = nil break end
  end
  runMembers[#runMembers + 1] = member
  runIds[#runIds + 1] = id
end
if run then again(run, runMembers, runIds) end
if #gone > 0 then
  redis.call('ZREM', leases, unpack(gone))
  redis.call('HDEL', fences, unpack(gone))
end
local open = tonumber(ARGV[4]) - redis.call('ZCARD', leases)
local room = math.min(limit - #found, open)
local left = {}
for at = 3, #KEYS do
  local key = KEYS[at]
  local more = 1
  while more == 1 and room > 0 and bytes < ${bytesMax} do
    local step = math.min(room, ${stepMax})
    local read = redis.pcall('XREADGROUP', 'GROUP', native, 'bus', 'COUNT', step, 'STREAMS', key, '>')
    if read and read.err and redis.call('EXISTS', key) == 1 then
      if not redis.pcall('XGROUP', 'CREATE', key, native, 0).err then
        read = redis.call('XREADGROUP', 'GROUP', native, 'bus', 'COUNT', step, 'STREAMS', key, '>')
      end
    end
    local entries = read and not read.err and read[1][2] or {}
    for _, entry in ipairs(entries) do hand(key, entry, key .. ' ' .. padded(entry[1]), 1) end
    if #entries < step then more = 0 end
    room = room - #entries
  end
  left[#left + 1] = more
end
if #found > 0 then
  redis.call('HSETNX', fences, '#', now)
  local last = redis.call('HINCRBY', fences, '#', #found)
  local rows = {}
  for at, entry in ipairs(found) do
    entry[3] = last - #found + at
    rows[at * 2 - 1] = counts[at]
    rows[at * 2] = entry[3] .. ' ' .. entry[4]
  end
  redis.call('ZADD', leases, unpack(lease))
  redis.call('HSET', fences, unpack(rows))
end
if open <= 0 then redis.call('HSET', fences, '#full', 1) end
local next = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
return {redis.call('ZCARD', leases), next and math.max(0, tonumber(next) - now) or -1, left, found}`),

  /**
   * KEYS: leases, fences; ARGV: native group, channel, group, lease, registry or nothing, then of each
   * settlement kind, stream, id, fence, delay, and of a dead one stream, mark, subject, window, id, data
   * and meta of its letter. Answers how many are out, and whether each was held.
   */
  settle: redisScript(`${luaStore}
${luaIds}
local leases, fences, native, channel = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local held, answer, gone, acks, woken = {}, {}, {}, {}, {}
local function countOf(member, fence)
  if held[member] == nil then held[member] = redis.call('HGET', fences, member) end
  local current, count = string.match(held[member] or '', '^(%d+) (%d+)$')
  return current == fence and tonumber(count) or nil
end
local function free(member, key, count, atMs)
  redis.call('ZADD', leases, atMs, member)
  held[member] = '0 ' .. count
  redis.call('HSET', fences, member, held[member])
  woken[key] = true
end
local function ack(member, key, id)
  held[member] = false
  gone[#gone + 1] = member
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
    elseif kind == 'extend' then redis.call('ZADD', leases, now + tonumber(ARGV[4]), member)
    elseif kind == 'dead' then
      local stream, mark, subject, window, letter, data, meta = unpack(ARGV, at + 5, at + 11)
      local idKey = mark .. ':' .. markOf(mark, ARGV[5], subject) .. ':' .. letter
      store(stream, idKey, window, data, meta)
      redis.call('PUBLISH', channel, 's ' .. subject)
      ack(member, key, id)
    end
  end
  answer[#answer + 1] = count and 1 or 0
  at = at + (kind == 'dead' and 12 or 5)
end
if #gone > 0 then
  redis.call('ZREM', leases, unpack(gone))
  redis.call('HDEL', fences, unpack(gone))
  for key, ids in pairs(acks) do redis.pcall('XACK', key, native, unpack(ids)) end
  if redis.call('HDEL', fences, '#full') == 1 then redis.call('PUBLISH', channel, 'g ' .. ARGV[3]) end
end
local message = {'g', ARGV[3]}
for key in pairs(woken) do message[#message + 1] = key end
if #message > 2 then redis.call('PUBLISH', channel, table.concat(message, ' ')) end
return {redis.call('ZCARD', leases), answer}`),
} as const;
