// Tasks in Lua: jobs, their order, and their signals change together or not at all.

import { luaRegister } from './redis-bus-scripts.ts';
import { redisScript } from './redis-script.ts';
import { luaHandOver } from './redis-task-hand-scripts.ts';
import { luaClaim, luaHeads, luaLanes, luaTell } from './redis-task-lua.ts';

/** How many values stand before those of the jobs. */
const enqueueHeader = 8;
const exchangeHeader = 12;

export const taskScripts = {
  /**
   * KEYS: base, never, queue stream, its mark; ARGV: now, channel, registry or nothing, subject, whether
   * the type is registered, where hands are (or nothing: to nobody's), where workers stand, the type; then of each job id, record, fixed, queue signal, dedupe key, until when,
   * parent (each or nothing). Answers of each 1 (2: and a worker has it), the id that is there, or 0
   * (draining); false: the type or its stream is new, and is to be registered first.
   */
  enqueue: redisScript(`${luaHeads}
${luaRegister}
${luaLanes}
${luaTell}
${luaClaim}
${luaHandOver}
local nowText, channel, registry, subject, isRegistered, hands, workers, type = unpack(ARGV, 1, ${enqueueHeader})
local now = tonumber(nowText)
local meta = redis.call('HMGET', base, 'mode', 'ready')
if isRegistered == '1' then
  if not meta[2] then redis.call('HSET', base, 'ready', 1) end
elseif not meta[2] or redis.call('EXISTS', KEYS[4]) == 0 then return false
else marked[subject] = true end
local answer, ids = {}, {}
for at = ${enqueueHeader + 1}, #ARGV, 7 do ids[#ids + 1] = ARGV[at] end
local there, made = readAll(jobs, ids), {}
for at = ${enqueueHeader + 1}, #ARGV, 7 do
  local suffix, record, fixed, data, key, untilMs, parent = unpack(ARGV, at, at + 6)
  local outcome = 1
  if meta[1] == 'draining' then outcome = 0
  elseif there[#answer + 1] or made[suffix] then outcome = suffix
  elseif key ~= '' then
    local before = redis.call('HGET', base .. ':w', key)
    local over, id = string.match(before or '', '^(%d+) (.*)$')
    if over and tonumber(over) > now then outcome = id
    else
      redis.call('HSET', base .. ':w', key, untilMs .. ' ' .. suffix)
      redis.call('ZADD', base .. ':wz', untilMs, key)
    end
  end
  if outcome == 1 then
    local t = split(record)
    if data ~= '' then
      t[12] = t[3] .. ':' .. tell(KEYS[3], KEYS[4], registry, subject, data)
      record = table.concat(t, '\\n')
    end
    made[suffix] = true
    set(jobs .. suffix, record)
    set(fixes .. suffix, fixed)
    zadd(openKey, t[15], suffix)
    if t[1] == 'S' then
      zadd(stateKeys.S, t[15], suffix)
      zadd(dueKey, t[5], suffix)
    end
    if parent ~= '' then zadd(base .. ':c:' .. parent, t[15], suffix) end
    pend(t, suffix, now)
  end
  answer[#answer + 1] = outcome
end
flush()
local isHanded = hands ~= '' and answer[1] == 1 and handOver(hands, workers, type, now, nowText)
if isHanded then answer[1] = 2 end
announce(channel)
if not isHanded or redis.call('EXISTS', base .. ':l') == 1 then tellNews(channel, subject) end
return answer`),

  /**
   * KEYS: base, never, then queue, terminal and progress stream, each with its mark (the last two only
   * where everything lies in one slot). ARGV: now, channel, registry or nothing, the three subjects, where
   * workers stand, worker, until when it is alive, the rule of the claim or nothing,
   * whether the queue stream is registered, their ids in lines; then of each change one value with its lines
   * (fence, revision, how many fields are set, how many go, how many signals, and those of `packChange`), each
   * field that is set with its value, each that goes, and each signal as its stream (1 to 3) with its place in
   * the job, and its data: few values, as each of them costs on both sides. One that begins with `=` has the whole
   * record behind it: how many fields, which go, and signals, then state, times and holder as of `wholeOf`, what the
   * record begins with, its new lines before those of signals, and behind. Answers what became of each (its
   * revision, or the record as it is), and the claim; false: the stream is to be registered first.
   */
  exchange: redisScript(`${luaHeads}
${luaRegister}
${luaLanes}
${luaTell}
${luaClaim}
local nowText, channel, registry, queueSubject = unpack(ARGV, 1, 4)
local workers, worker, aliveUntil, ruleText = unpack(ARGV, 7, 10)
local now = tonumber(nowText)
if ARGV[11] == '0' and registry == '' and redis.call('EXISTS', KEYS[4]) == 0 then return false end
local changePattern = '^${'(%d*)\\n'.repeat(5)}(%a?)\\n${'(%S*)\\n'.repeat(7)}([^\\n]*)\\n()'
local wholePattern = '^=${'(%d+) '.repeat(3)}(%a) (%d*) (%d*) (.*)$'
local placesPattern = '^%a\\n${'%S+\\n'.repeat(10)}([^\\n]*)\\n([^\\n]*)\\n'
local answer, seen, lost, refused = {}, {}, {}, {}
local at = ${exchangeHeader + 1}
local function leave(t, suffix)
  if t[1] == 'R' then
    zrem(runningKey, suffix)
    lost[t[14]] = (lost[t[14]] or 0) + 1
    if t[17] ~= '' then release(t[17]) end
    return
  end
  if t[1] == 'S' then zrem(dueKey, suffix) end
  if t[1] == 'C' or t[1] == 'F' or t[1] == 'X' then
    zrem(endedKey, suffix)
    zrem(stateKeys[t[1]], suffix)
    zadd(openKey, t[15], suffix)
  else
    unpend(t, suffix)
    if t[1] ~= 'Q' then zrem(stateKeys[t[1]], suffix) end
  end
end
local function enter(t, suffix)
  if t[1] == 'R' then
    zadd(runningKey, t[8] ~= '0' and tonumber(t[8]) < tonumber(t[7]) and t[8] or t[7], suffix)
    if t[17] ~= '' then redis.call('HINCRBY', base .. ':r', t[17], 1) end
    lost[t[14]] = (lost[t[14]] or 0) - 1
    return
  end
  t[14] = ''
  if t[1] == 'C' or t[1] == 'F' or t[1] == 'X' then
    zrem(openKey, suffix)
    zadd(stateKeys[t[1]], t[15], suffix)
    zadd(endedKey, t[11], suffix)
  else
    if t[1] ~= 'Q' then zadd(stateKeys[t[1]], t[15], suffix) end
    if t[1] == 'S' then zadd(dueKey, t[5], suffix) end
    pend(t, suffix, now)
  end
end
local function addFields(suffix, putsAt, goesAt, signalsAt, places)
  local fields
  if goesAt > putsAt then fields = {unpack(ARGV, putsAt, goesAt - 1)} end
  for place = signalsAt, at - 1, 2 do
    local number = string.byte(ARGV[place]) - 48
    local inJob = string.sub(ARGV[place], 2)
    local id = tell(KEYS[1 + number * 2], KEYS[2 + number * 2], registry, ARGV[3 + number], ARGV[place + 1])
    if number < 3 then places[number] = inJob .. ':' .. id
    else
      fields = fields or {}
      fields[#fields + 1] = '~' .. inJob
      fields[#fields + 1] = id
    end
  end
  if fields then redis.call('HSET', hashes .. suffix, unpack(fields)) end
  if signalsAt > goesAt then redis.call('HDEL', hashes .. suffix, unpack(ARGV, goesAt, signalsAt - 1)) end
end
local function replace(record, key, suffix, lines)
  local puts, goes, signals, state, first, second, holder = string.match(lines, wholePattern)
  local expected, before, behind = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local putsAt = at + 4
  local goesAt = putsAt + puts * 2
  local signalsAt = goesAt + goes
  at = signalsAt + signals * 2
  if not record then return false end
  if refused[suffix] or string.sub(record, 1, #expected) ~= expected then
    refused[suffix] = true
    return record
  end
  seen[suffix] = true
  if state ~= 'R' then
    zrem(runningKey, suffix)
    zrem(openKey, suffix)
    zadd(stateKeys[state], first, suffix)
    zadd(endedKey, second, suffix)
    lost[holder] = (lost[holder] or 0) + 1
  elseif first ~= '' then zadd(runningKey, first, suffix) end
  local places = {string.match(record, placesPattern)}
  addFields(suffix, putsAt, goesAt, signalsAt, places)
  set(key, before .. places[1] .. '\\n' .. places[2] .. '\\n' .. behind)
  return tonumber(string.match(before, '^%a\\n(%d+)'))
end
local ids = {}
for suffix in string.gmatch(ARGV[${exchangeHeader}], '([^\\n]+)') do ids[#ids + 1] = suffix end
local records, recordKeys = readAll(jobs, ids)
local function merge(record, key, suffix, lines)
  local fence, revision, puts, goes, signals, state, newFence, priority, due, failures, deadline, cancel, ended, who, runAt =
    string.match(lines, changePattern)
  local putsAt = at + 1
  local goesAt = putsAt + puts * 2
  local signalsAt = goesAt + goes
  at = signalsAt + signals * 2
  local t = record and {string.match(record, recordPattern)}
  if not t then return false end
  local isOther = (fence ~= '' and (t[1] ~= 'R' or t[3] ~= fence)) or (revision ~= '' and t[2] ~= revision)
  if isOther or refused[suffix] then return record end
  seen[suffix] = true
  if runAt > #lines then t[19] = string.sub(record, t[19])
  else
    local _, stays = string.find(record, '\\n\\n', t[19], true)
    t[19] = string.sub(record, t[19], stays) .. string.sub(lines, runAt)
  end
  if state == '' then state = t[1] end
  local isMoved = state ~= t[1] or (state ~= 'R' and (due ~= '' or priority ~= ''))
  if isMoved then leave(t, suffix) end
  if newFence ~= '' then t[3] = newFence end
  if priority ~= '' then t[4] = priority end
  if due ~= '' then t[5] = due end
  if failures ~= '' then t[6] = failures end
  if deadline ~= '' then t[7] = deadline end
  if cancel ~= '' then t[8] = cancel end
  if ended ~= '' then t[11] = ended end
  if who ~= '' then t[14] = string.sub(who, 2) end
  t[1], t[2], t[10] = state, nextOf(t[2]), nowText
  if isMoved then enter(t, suffix)
  elseif state == 'R' and (deadline ~= '' or cancel ~= '') then
    zadd(runningKey, t[8] ~= '0' and tonumber(t[8]) < tonumber(t[7]) and t[8] or t[7], suffix)
  end
  if goesAt > putsAt then t[18] = '1' end
  local places = {t[12], t[13]}
  addFields(suffix, putsAt, goesAt, signalsAt, places)
  t[12], t[13] = places[1], places[2]
  set(key, table.concat(t, '\\n'))
  return tonumber(t[2])
end
for n, suffix in ipairs(ids) do
  local record = records[n]
  if seen[suffix] then
    flush()
    record = redis.call('GET', jobs .. suffix)
  end
  local lines = ARGV[at]
  if string.byte(lines) == 61 then answer[n] = replace(record, recordKeys[n], suffix, lines)
  else answer[n] = merge(record, recordKeys[n], suffix, lines) end
end
flush()
local claimed = {{}, 0, '-1', 0}
if ruleText ~= '' then
  if workers == '' then workers = base .. ':b' end
  redis.call('HSET', workers, worker, aliveUntil)
  claimed = claim(now, nowText, worker, ruleOf(ruleText))
  lost[worker] = (lost[worker] or 0) - claimed[4]
end
for name, count in pairs(lost) do
  if count ~= 0 and redis.call('HINCRBY', base .. ':n', name, -count) <= 0 then
    redis.call('HDEL', base .. ':n', name)
  end
end
announce(channel)
tellNews(channel, queueSubject)
return {answer, claimed[1], claimed[2], claimed[3]}`),

  /**
   * The same without changes, and with less to prepare, as a job that has just come waits for it. KEYS: base,
   * never; ARGV: now, channel, subject of the queue, where workers stand, worker, until when it is alive, rule.
   */
  claim: redisScript(`${luaHeads}
${luaLanes}
${luaClaim}
local nowText, channel, queueSubject, workers, worker, aliveUntil, ruleText = unpack(ARGV)
redis.call('HSET', workers == '' and base .. ':b' or workers, worker, aliveUntil)
local claimed = claim(tonumber(nowText), nowText, worker, ruleOf(ruleText))
if claimed[4] > 0 then redis.call('HINCRBY', base .. ':n', worker, claimed[4]) end
tellNews(channel, queueSubject)
return {{}, claimed[1], claimed[2], claimed[3]}`),
} as const;
