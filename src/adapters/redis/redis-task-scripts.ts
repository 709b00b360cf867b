// Tasks in Lua: jobs, their order, and their signals change together or not at all.

import { luaRegister } from './redis-bus-scripts.ts';
import { redisScript } from './redis-script.ts';
import { luaClaim, luaHeads, luaLanes, luaTell } from './redis-task-lua.ts';

/** How many values stand before those of the jobs. */
const enqueueHeader = 5;
const exchangeHeader = 12;

export const taskScripts = {
  /**
   * KEYS: base, never, queue stream, its mark; ARGV: now, channel, registry or nothing, subject, whether
   * the type is registered; then of each job id, head, fixed, run, queue signal, dedupe key, until when,
   * parent (each or nothing). Answers of each 1, the id that is there, or 0 (draining); false: the type or
   * its stream is new, and is to be registered first.
   */
  enqueue: redisScript(`${luaHeads}
${luaRegister}
${luaLanes}
${luaTell}
local nowText, channel, registry, subject, isRegistered = unpack(ARGV, 1, ${enqueueHeader})
local now = tonumber(nowText)
local meta = redis.call('HMGET', base, 'mode', 'ready')
if isRegistered == '1' then
  if not meta[2] then redis.call('HSET', base, 'ready', 1) end
elseif not meta[2] or redis.call('EXISTS', KEYS[4]) == 0 then return false end
local answer = {}
for at = ${enqueueHeader + 1}, #ARGV, 8 do
  local suffix, head, fixed, run, data, key, untilMs, parent = unpack(ARGV, at, at + 7)
  local job = jobs .. suffix
  local outcome = 1
  if meta[1] == 'draining' then outcome = 0
  elseif redis.call('EXISTS', job) == 1 then outcome = suffix
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
    local t = {string.match(head, headPattern)}
    if data ~= '' then
      t[12] = t[3] .. ':' .. tell(KEYS[3], KEYS[4], registry, subject, data)
      head = table.concat(t, '\\n')
    end
    redis.call('HSET', job, 'h', head, 'p', fixed, 'r', run)
    zadd(base .. ':o', t[15], suffix)
    if t[1] == 'S' then
      zadd(base .. ':s:S', t[15], suffix)
      zadd(base .. ':u', t[5], suffix)
    end
    if parent ~= '' then zadd(base .. ':c:' .. parent, t[15], suffix) end
    pend(t, suffix, now)
  end
  answer[#answer + 1] = outcome
end
flush()
announce(channel, subject)
return answer`),

  /**
   * KEYS: base, never, then queue, terminal and progress stream, each with its mark (the last two only
   * where everything lies in one slot). ARGV: now, channel, registry or nothing, the three subjects, where
   * workers stand, worker, until when it is alive, the rule of the claim or nothing, the number of changes,
   * whether the queue stream is registered; then of each change one value with its lines (id, fence,
   * revision, how many fields are set, how many go, how many signals, and those of `packChange`), each field
   * that is set with its value, each that goes, and each signal as its stream (1 to 3) with its place in the
   * job, and its data: few values, as each of them costs on both sides. Answers what became of each (its revision, or
   * the head as it is), and the claim; false: the stream is to be registered first.
   */
  exchange: redisScript(`${luaHeads}
${luaRegister}
${luaLanes}
${luaTell}
${luaClaim}
local nowText, channel, registry, queueSubject = unpack(ARGV, 1, 4)
local workers, worker, aliveUntil, ruleText = unpack(ARGV, 7, 10)
local changes = tonumber(ARGV[11])
local now = tonumber(nowText)
if ARGV[12] == '0' and registry == '' and redis.call('EXISTS', KEYS[4]) == 0 then return false end
local changePattern = '^${'([^\\n]*)\\n'.repeat(14)}(.*)$'
local answer, seen, lost = {}, {}, {}
local at = ${exchangeHeader + 1}
local function leave(t, suffix)
  if t[1] == 'R' then
    zrem(base .. ':x', suffix)
    lost[t[14]] = (lost[t[14]] or 0) + 1
    if t[17] ~= '' then release(t[17]) end
    return
  end
  if t[1] == 'S' then zrem(base .. ':u', suffix) end
  if t[1] == 'C' or t[1] == 'F' or t[1] == 'X' then
    zrem(base .. ':e', suffix)
    zrem(base .. ':s:' .. t[1], suffix)
    zadd(base .. ':o', t[15], suffix)
  else
    unpend(t, suffix)
    if t[1] ~= 'Q' then zrem(base .. ':s:' .. t[1], suffix) end
  end
end
local function enter(t, suffix)
  if t[1] == 'R' then
    zadd(base .. ':x', t[8] ~= '0' and tonumber(t[8]) < tonumber(t[7]) and t[8] or t[7], suffix)
    if t[17] ~= '' then redis.call('HINCRBY', base .. ':r', t[17], 1) end
    lost[t[14]] = (lost[t[14]] or 0) - 1
    return
  end
  t[14] = ''
  if t[1] == 'C' or t[1] == 'F' or t[1] == 'X' then
    zrem(base .. ':o', suffix)
    zadd(base .. ':s:' .. t[1], t[15], suffix)
    zadd(base .. ':e', t[11], suffix)
  else
    if t[1] ~= 'Q' then zadd(base .. ':s:' .. t[1], t[15], suffix) end
    if t[1] == 'S' then zadd(base .. ':u', t[5], suffix) end
    pend(t, suffix, now)
  end
end
for _ = 1, changes do
  local suffix, fence, revision, sets, goes, signals, state, newFence, priority, due, failures, deadline, cancel, ended, who =
    string.match(ARGV[at], changePattern)
  local job = jobs .. suffix
  local setsAt = at + 1
  local goesAt = setsAt + sets * 2
  local signalsAt = goesAt + goes
  at = signalsAt + signals * 2
  local head = redis.call('HGET', job, 'h')
  local t = head and {string.match(head, headPattern)}
  if not t then answer[#answer + 1] = false
  elseif (fence ~= '' and (t[1] ~= 'R' or t[3] ~= fence)) or (revision ~= '' and t[2] ~= revision) then
    answer[#answer + 1] = head
  else
    if seen[suffix] then flush() end
    seen[suffix] = true
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
    t[1], t[2], t[10] = state, tonumber(t[2]) + 1, nowText
    if isMoved then enter(t, suffix)
    elseif state == 'R' and (deadline ~= '' or cancel ~= '') then
      zadd(base .. ':x', t[8] ~= '0' and tonumber(t[8]) < tonumber(t[7]) and t[8] or t[7], suffix)
    end
    local fields = {unpack(ARGV, setsAt, goesAt - 1)}
    for place = signalsAt, at - 1, 2 do
      local number = string.byte(ARGV[place]) - 48
      local inJob = string.sub(ARGV[place], 2)
      local id = tell(KEYS[1 + number * 2], KEYS[2 + number * 2], registry, ARGV[3 + number], ARGV[place + 1])
      if number < 3 then t[11 + number] = inJob .. ':' .. id
      else
        fields[#fields + 1] = '~' .. inJob
        fields[#fields + 1] = id
      end
    end
    redis.call('HSET', job, 'h', table.concat(t, '\\n'), unpack(fields))
    if signalsAt > goesAt then redis.call('HDEL', job, unpack(ARGV, goesAt, signalsAt - 1)) end
    answer[#answer + 1] = t[2]
  end
end
flush()
local claimed = {{}, 0, '-1', 0}
if ruleText ~= '' then
  if workers == '' then workers = base .. ':b' end
  redis.call('HSET', workers, worker, aliveUntil)
  local rule = {}
  for word in string.gmatch(ruleText .. ' ', '([^ ]*) ') do rule[#rule + 1] = word end
  claimed = claim(now, nowText, worker, rule)
  lost[worker] = (lost[worker] or 0) - claimed[4]
end
for name, count in pairs(lost) do
  if count ~= 0 and redis.call('HINCRBY', base .. ':n', name, -count) <= 0 then
    redis.call('HDEL', base .. ':n', name)
  end
end
announce(channel, queueSubject)
return {answer, claimed[1], claimed[2], claimed[3]}`),
} as const;
