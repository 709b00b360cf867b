// The bus in Lua: streams, and what stands beside them, change together or not at all.
//
// A lease is a member of a sorted set, `<stream key> <padded id>`, scored by when it is over; 0: free to
// be handed out, in the order of the text. Its fence and count stand in a hash: `<fence> <count>`.

import { luaNow, redisScript } from './redis-script.ts';

const luaIds = `local function padded(id)
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
const luaRegister = `local function register(registry, subject)
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
   * hash of records or nothing, group, generation. Answers how many are out, when the next one is free,
   * what each stream may have left, and the messages; -1: the group is gone.
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
