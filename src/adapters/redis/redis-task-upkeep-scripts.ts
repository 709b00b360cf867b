// Tasks from outside, in Lua: signals that were lost, what is overdue, what is old, what is in the way.

import { luaRegister } from './redis-bus-scripts.ts';
import { redisScript } from './redis-script.ts';
import { luaHeads, luaLanes, luaTell, newsSuffix } from './redis-task-lua.ts';

/** Where a signal was told: in the head (`<fence>:<id>`), or in a field of its own. */
const luaNotes = `local function noted(suffix, t, number, place)
  if number == 3 then return redis.call('HGET', hashes .. suffix, '~' .. place) or '' end
  local fence, id = string.match(t[11 + number], '^(%d+):(.*)$')
  if not fence then return '' end
  if fence == place then return id end
  return tonumber(fence) > tonumber(place) and 'later' or ''
end
local function note(suffix, t, number, place, id)
  if number == 3 then redis.call('HSET', hashes .. suffix, '~' .. place, id) return end
  t[11 + number] = place .. ':' .. id
  redis.call('SET', jobs .. suffix, table.concat(t, '\\n'))
end`;

export const taskUpkeepScripts = {
  /**
   * KEYS as of an exchange; ARGV: channel, registry or nothing, three subjects, then of each signal the
   * id of its job, stream (1 to 3), place and data. Answers how many were not there.
   */
  repair: redisScript(`${luaHeads}
${luaRegister}
${luaLanes}
${luaTell}
${luaNotes}
local count = 0
for at = 6, #ARGV, 4 do
  local suffix, number, place, data = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local t = recordOf(suffix)
  if t then
    local stream = KEYS[1 + number * 2]
    local id = noted(suffix, t, number, place)
    if id ~= 'later' and (id == '' or #redis.call('XRANGE', stream, id, id, 'COUNT', 1) == 0) then
      note(suffix, t, number, place, tell(stream, KEYS[2 + number * 2], ARGV[2], ARGV[2 + number], data))
      count = count + 1
    end
  end
end
announce(ARGV[1])
return count`),

  /** KEYS: base, never; ARGV: of each signal job, stream, place, id in the stream. */
  note: redisScript(`${luaHeads}
${luaNotes}
for at = 1, #ARGV, 4 do
  local t = recordOf(ARGV[at])
  if t and noted(ARGV[at], t, tonumber(ARGV[at + 1]), ARGV[at + 2]) ~= 'later' then
    note(ARGV[at], t, tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3])
  end
end
return 1`),

  /** KEYS: base, never; ARGV: of each signal job, stream, place. Answers where each was told, or nothing. */
  noted: redisScript(`${luaHeads}
${luaNotes}
local answer = {}
for at = 1, #ARGV, 3 do
  local t = recordOf(ARGV[at])
  local id = t and noted(ARGV[at], t, tonumber(ARGV[at + 1]), ARGV[at + 2]) or ''
  answer[#answer + 1] = id == 'later' and '' or id
end
return answer`),

  /**
   * KEYS: stream, mark; ARGV: how long to remember, channel, registry or nothing, subject, then of each
   * signal its id, where it was told as far as known, its data. Answers of each where it is, and whether
   * it was.
   */
  restore: redisScript(`${luaRegister}
local stream, mark = KEYS[1], KEYS[2]
local life = redis.call('GET', mark)
if not life then
  local time = redis.call('TIME')
  life = time[1] .. '.' .. time[2]
  redis.call('SET', mark, life)
  if ARGV[3] ~= '' then register(ARGV[3], ARGV[4]) end
end
local function isThere(id)
  return id and id ~= '' and #redis.call('XRANGE', stream, id, id, 'COUNT', 1) > 0
end
local answer, isNews = {}, false
for at = 5, #ARGV, 3 do
  local idKey = mark .. ':' .. life .. ':' .. ARGV[at]
  local known = redis.call('GET', idKey)
  local id = isThere(known) and known or isThere(ARGV[at + 1]) and ARGV[at + 1]
  answer[#answer + 1] = id or redis.call('XADD', stream, '*', 'data', ARGV[at + 2])
  answer[#answer + 1] = id and 1 or 0
  if not id then
    isNews = true
    redis.call('SET', idKey, answer[#answer - 1], 'PX', ARGV[1])
  end
end
if isNews then redis.call('PUBLISH', ARGV[2], 's ' .. ARGV[4]) end
return answer`),

  /** KEYS: base, never; ARGV: now, limit. Answers what is overdue, who has jobs, and who is alive here. */
  overdue: redisScript(`local base = KEYS[1]
return {
  redis.call('ZRANGEBYSCORE', base .. ':x', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2]),
  redis.call('HKEYS', base .. ':n'),
  redis.call('HGETALL', base .. ':b'),
}`),

  /** KEYS: base, never; ARGV: limit, workers that are gone. Answers what they hold. */
  heldBy: redisScript(`${luaHeads}
local gone, held, limit = {}, {}, tonumber(ARGV[1])
for at = 2, #ARGV do gone[ARGV[at]] = 0 end
for offset = 0, 1e9, 1000 do
  local some = redis.call('ZRANGE', runningKey, offset, offset + 999)
  for _, suffix in ipairs(some) do
    local t = recordOf(suffix)
    local count = t and t[1] == 'R' and gone[t[14]]
    if count then
      gone[t[14]] = count + 1
      held[#held + 1] = suffix
      if #held == limit then return held end
    end
  end
  if #some < 1000 then break end
end
for worker, count in pairs(gone) do
  if count == 0 then redis.call('HDEL', base .. ':n', worker) end
end
return held`),

  /** KEYS: base, never; ARGV: ids. Answers how many had ended, and are gone. */
  remove: redisScript(`${luaHeads}
local count = 0
for _, suffix in ipairs(ARGV) do
  local t = recordOf(suffix)
  if t and (t[1] == 'C' or t[1] == 'F' or t[1] == 'X') then
    redis.call('UNLINK', jobs .. suffix, fixes .. suffix, hashes .. suffix)
    zrem(stateKeys[t[1]], suffix)
    zrem(endedKey, suffix)
    local parent = string.match(t[19], '^[^\\n]+')
    if parent then zrem(base .. ':c:' .. parent, suffix) end
    count = count + 1
  end
end
flush()
return count`),

  /**
   * KEYS: base, never, queue stream; ARGV: now, native group of the workers, channel, subject. What was
   * handed out is acked: the group moves on to the oldest job that waits.
   */
  tidy: redisScript(`${luaHeads}
${luaLanes}
while true do
  local over = redis.call('ZRANGEBYSCORE', base .. ':wz', '-inf', ARGV[1], 'LIMIT', 0, 1000)
  if #over == 0 then break end
  redis.call('HDEL', base .. ':w', unpack(over))
  redis.call('ZREM', base .. ':wz', unpack(over))
end
for _, key in ipairs(redis.call('SRANDMEMBER', base .. ':ks', 1000)) do
  if redis.call('HEXISTS', base .. ':r', key) == 0 then unpark(key) end
end
if redis.call('HLEN', base .. ':t') > 10000 then redis.call('DEL', base .. ':t') end
if redis.call('EXISTS', KEYS[3]) == 1 then
  local lowest
  local function before(id)
    local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
    ms, seq = tonumber(ms), tonumber(seq)
    if not lowest or ms < lowest[1] or (ms == lowest[1] and seq < lowest[2]) then lowest = {ms, seq} end
  end
  local offset, looked = 0, 0
  while looked < 100 and offset < 10000 do
    local some = redis.call('ZRANGE', openKey, offset, offset + 99)
    for _, suffix in ipairs(some) do
      local t = recordOf(suffix)
      local id = t and t[1] == 'Q' and string.match(t[12], ':(.*)$')
      if id then before(id) looked = looked + 1 end
    end
    if #some < 100 then break end
    offset = offset + 100
  end
  local position = '$'
  if lowest then
    if lowest[2] > 0 then position = text(lowest[1]) .. '-' .. text(lowest[2] - 1)
    else position = text(lowest[1] - 1) .. '-18446744073709551615' end
  end
  if redis.pcall('XGROUP', 'SETID', KEYS[3], ARGV[2], position).err then
    redis.pcall('XGROUP', 'CREATE', KEYS[3], ARGV[2], position)
  end
end
tellNews(ARGV[3], ARGV[4])
return 1`),

  /** KEYS: base, never; ARGV: ids. Answers of each its record, what never changes, and its hash; or nothing. */
  read: redisScript(`${luaHeads}
local answer, fixed = readAll(jobs, ARGV), readAll(fixes, ARGV)
for at, record in ipairs(answer) do
  if record then
    local job = {ARGV[at], record, fixed[at] or ''}
    for _, cell in ipairs(redis.call('HGETALL', hashes .. ARGV[at])) do job[#job + 1] = cell end
    answer[at] = job
  end
end
return answer`),

  /** KEYS: base, never; ARGV: ids. Answers their records. */
  records: redisScript(`${luaHeads}
return readAll(jobs, ARGV)`),

  /** KEYS: base, never; ARGV: mode or nothing, channel, subject. */
  setMode: redisScript(`if ARGV[1] == '' then redis.call('HDEL', KEYS[1], 'mode')
else redis.call('HSET', KEYS[1], 'mode', ARGV[1]) end
redis.call('PUBLISH', ARGV[2] .. '${newsSuffix}', 's ' .. ARGV[3])
return 1`),

  /** KEYS: base, never. Answers how many are open, running, waiting, scheduled, and ended in each way. */
  counts: redisScript(`local answer = {}
for at, name in ipairs({':o', ':x', ':s:W', ':s:S', ':s:C', ':s:F', ':s:X'}) do
  answer[at] = redis.call('ZCARD', KEYS[1] .. name)
end
return answer`),
} as const;
