// What the scripts of tasks share: heads, the order of what waits, and who is next. KEYS[1] is the base of
// a type; its other keys begin with it:
//
// - `:j:<id>`: the record of a job, `:p:<id>`: what never changes of it, `:f:<id>`: its steps and events, a
//   hash. `:o`: all that are open, `:s:<state>`: those that wait, are scheduled or have ended,
//   by when they were enqueued. `:e`: what has ended, by when. `:u`: what is scheduled, by when it is due.
// - `:x`: what runs, by when it is overdue. `:n`: how many a worker has. `:b`: until when it is alive.
// - `:q:<priority>:<tenant>`: a lane, what is due, by when. `:l`: the lanes that are not empty, by priority
//   and by whose turn it is. `:t`: the turn of a lane that is empty. `:d`: what is due later.
// - `:r`: how many run of a concurrency key. `:k:<key>`: what waits for one, `:ks`: such keys.
// - `:h`: who may wait for jobs, by until when that is known (redis-task-hands.ts).
// - `:f`: when rates are full. `:w`, `:wz`: dedupe keys, and when they are over. `:c:<job>`: its children.

/**
 * Behind the channel of the bus: what workers listen to, when something may be there for them. Of ends and steps
 * they need not hear, and there are many of those, and of them.
 */
export const newsSuffix = ':tasks';

/** More of them in one command, and Lua's stack is full. */
const someMax = 1_000;

export const luaHeads = `local base = KEYS[1]
local jobs, fixes, hashes = base .. ':j:', base .. ':p:', base .. ':f:'
local runningKey, openKey, endedKey, dueKey = base .. ':x', base .. ':o', base .. ':e', base .. ':u'
local stateKeys = {}
for _, letter in ipairs({'W', 'S', 'C', 'F', 'X'}) do stateKeys[letter] = base .. ':s:' .. letter end
local recordPattern = '^(%a)\\n${'(%S+)\\n'.repeat(10)}${'([^\\n]*)\\n'.repeat(7)}()'
local function text(number) return string.format('%.0f', number) end
local nexts = {}
local function nextOf(digits)
  local number = nexts[digits]
  if not number then
    number = text(digits + 1)
    nexts[digits] = number
  end
  return number
end
local function readAll(before, some)
  local keys, values = {}, {}
  for at = 1, #some do keys[at] = before .. some[at] end
  for from = 1, #some, ${someMax} do
    local found = redis.call('MGET', unpack(keys, from, math.min(from + ${someMax - 1}, #some)))
    if #some <= ${someMax} then return found, keys end
    for _, value in ipairs(found) do values[#values + 1] = value end
  end
  return values, keys
end
local function split(record)
  local t = {string.match(record, recordPattern)}
  t[19] = string.sub(record, t[19])
  return t
end
local function recordOf(suffix)
  local record = redis.call('GET', jobs .. suffix)
  return record and split(record)
end
local adds, rems, sets = {}, {}, {}
local function flush()
  for at = 1, #sets, ${someMax} do
    redis.call('MSET', unpack(sets, at, math.min(at + ${someMax - 1}, #sets)))
  end
  for key, some in pairs(rems) do
    for at = 1, #some, ${someMax} do
      redis.call('ZREM', key, unpack(some, at, math.min(at + ${someMax - 1}, #some)))
    end
  end
  for key, some in pairs(adds) do
    for at = 1, #some, ${someMax} do
      redis.call('ZADD', key, unpack(some, at, math.min(at + ${someMax - 1}, #some)))
    end
  end
  adds, rems, sets = {}, {}, {}
end
local function set(key, value)
  sets[#sets + 1] = key
  sets[#sets + 1] = value
end
local function zadd(key, score, member)
  local some = adds[key]
  if not some then some = {} adds[key] = some end
  some[#some + 1] = score
  some[#some + 1] = member
end
local function zrem(key, member)
  local some = rems[key]
  if not some then some = {} rems[key] = some end
  some[#some + 1] = member
end`;

/**
 * A lane's place: its priority first, then whose turn it is. One that was never served comes before all
 * that were, in the order in which they came.
 */
export const luaLanes = `local isNews = false
local function tellNews(channel, queueSubject)
  if isNews then redis.call('PUBLISH', channel .. '${newsSuffix}', 's ' .. queueSubject) end
end
local openLanes = {}
local function laneScore(lane, turn)
  return text((9 - tonumber(string.sub(lane, 1, 1))) * 4e14 + 1e14 + turn)
end
local function openLane(lane)
  if openLanes[lane] then return end
  openLanes[lane] = true
  local turn = redis.call('HGET', base .. ':t', lane)
  if not turn and redis.call('ZSCORE', base .. ':l', lane) then return end
  turn = turn and tonumber(turn) or redis.call('HINCRBY', base, 'n', 1) - 1e14
  redis.call('ZADD', base .. ':l', 'NX', laneScore(lane, turn), lane)
end
local function placeOf(t, suffix)
  return t[4] .. ':' .. t[16], string.rep('0', 14 - #t[15]) .. t[15] .. suffix
end
local function pend(t, suffix, now)
  local lane, member = placeOf(t, suffix)
  isNews = true
  if tonumber(t[5]) > now then zadd(base .. ':d', t[5], lane .. '\\n' .. member) return end
  zadd(base .. ':q:' .. lane, t[5], member)
  openLane(lane)
end
local function unpark(key)
  local parked = base .. ':k:' .. key
  local first = redis.call('ZRANGE', parked, 0, 0, 'WITHSCORES')
  if not first[1] then redis.call('SREM', base .. ':ks', key) return false end
  redis.call('ZREM', parked, first[1])
  local lane, member = string.match(first[1], '^([^\\n]*)\\n(.*)$')
  local due = tonumber(first[2]) - (9 - tonumber(string.sub(lane, 1, 1))) * 1e14
  redis.call('ZADD', base .. ':q:' .. lane, text(due), member)
  openLane(lane)
  isNews = true
  return true
end
local function unpend(t, suffix)
  local lane, member = placeOf(t, suffix)
  if redis.call('ZREM', base .. ':q:' .. lane, member) == 1 then
    if t[17] ~= '' then unpark(t[17]) end
  elseif redis.call('ZREM', base .. ':d', lane .. '\\n' .. member) == 0 and t[17] ~= '' then
    redis.call('ZREM', base .. ':k:' .. t[17], lane .. '\\n' .. member)
  end
end
local function release(key)
  if redis.call('HINCRBY', base .. ':r', key, -1) <= 0 then redis.call('HDEL', base .. ':r', key) end
  unpark(key)
end`;

/** What one claim looks at, at most: what is due at once may be anything. */
const promoteMax = 5_000;
const lanesMax = 2_000;

/**
 * What a claim reads of a record: state, revision, fence, what stays up to the deadline, when it is
 * cancelled, what stays up to the worker, where that begins which stays behind it, and in that tenant, key,
 * and whether there is a hash.
 */
const claimPattern = `^(%a)\\n(%d+)\\n(%d+)\\n(%S+\\n%S+\\n%S+\\n)%S+\\n(%S+)\\n%S+\\n%S+\\n(%S+\\n[^\\n]*\\n[^\\n]*\\n)[^\\n]*\\n()%S+\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n`;

/**
 * Answers the jobs (as `unpackTask` reads them), whether there may be more at once, when there may be
 * more (-1: nobody knows), and how many they are. `rule`: limit, deadline, key limit, count, span and kind
 * of the rate.
 */
export const luaClaim = `local claimPattern = '${claimPattern}'
local function ruleOf(words) return {string.match(words, '^${'(%S*) '.repeat(5)}(%S*)$')} end
local function unparkAll()
  for _, key in ipairs(redis.call('SMEMBERS', base .. ':ks')) do
    for _ = 1, ${someMax} do if not unpark(key) then break end end
  end
end
local function firstLater()
  local score = redis.call('ZRANGE', base .. ':d', 0, 0, 'WITHSCORES')[2]
  return score and tonumber(score)
end
local function promote(nowText)
  local later = base .. ':d'
  for _ = 1, ${promoteMax / 500} do
    local due = redis.call('ZRANGEBYSCORE', later, '-inf', nowText, 'WITHSCORES', 'LIMIT', 0, 500)
    if #due == 0 then return end
    local gone = {}
    for at = 1, #due, 2 do
      local lane, member = string.match(due[at], '^([^\\n]*)\\n(.*)$')
      gone[#gone + 1] = due[at]
      redis.call('ZADD', base .. ':q:' .. lane, due[at + 1], member)
      openLane(lane)
    end
    redis.call('ZREM', later, unpack(gone))
    if #due < 1000 then return end
  end
end
local function claim(now, nowText, worker, rule)
  local limit, deadline, keyLimit = tonumber(rule[1]), rule[2], tonumber(rule[3])
  local perMs, isPerTenant = tonumber(rule[5]), rule[6] == '1'
  local eachMs = perMs and perMs / tonumber(rule[4])
  local meta = redis.call('HMGET', base, 'mode', 'keys')
  if meta[1] == 'paused' then return {{}, 0, -1, 0} end
  if (meta[2] or '') ~= rule[3] then
    redis.call('HSET', base, 'keys', rule[3])
    unparkAll()
  end
  local later = firstLater()
  if later and later <= now then
    promote(nowText)
    later = firstLater()
  end
  local found, freeAt, served, need = {}, -1, 0, limit
  local foundIds, hashed, deadlineMs = {}, {}, tonumber(deadline)
  local deadlineLine, workerLine = deadline .. '\\n', worker .. '\\n'
  local claimedLines = '\\n' .. nowText .. '\\n' .. nowText .. '\\n'
  local rates, running, states = {}, {}, {}
  local function free(at) if freeAt < 0 or at < freeAt then freeAt = at end end
  local function isWithinRate(tenant)
    local bucket = isPerTenant and '=' .. tenant or ''
    local fullAt = rates[bucket]
    if not fullAt then fullAt = tonumber(redis.call('HGET', base .. ':f', bucket) or '0') end
    local began = math.max(fullAt, now)
    if math.floor((now + perMs - began) / eachMs + 1e-6) < 1 then
      free(math.max(now, math.ceil(fullAt + eachMs - perMs)))
      rates[bucket] = fullAt
      return false
    end
    rates[bucket] = began + eachMs
    redis.call('HSET', base .. ':f', bucket, string.format('%.17g', began + eachMs))
    return true
  end
  local function takeOne(lane, share)
    while true do
      if lane.at > #lane.some then
        if lane.isDone then return false end
        lane.some = redis.call('ZRANGEBYSCORE', lane.key, '-inf', nowText, 'LIMIT', lane.skip, share)
        lane.skip = lane.skip + #lane.some
        lane.at = 1
        if #lane.some < share then lane.isDone = true end
        if #lane.some == 0 then return false end
        lane.ids = {}
        for n, each in ipairs(lane.some) do lane.ids[n] = string.sub(each, 15) end
        lane.records, lane.keys = readAll(jobs, lane.ids)
      end
      local member = lane.some[lane.at]
      local suffix, record, recordKey = lane.ids[lane.at], lane.records[lane.at], lane.keys[lane.at]
      lane.at = lane.at + 1
      local state, revision, fence, first, cancel, second, rest, tenant, key, hash
      if record then
        state, revision, fence, first, cancel, second, rest, tenant, key, hash = string.match(record, claimPattern)
      end
      local isParked = false
      if state and keyLimit and key ~= '' then
        running[key] = running[key] or tonumber(redis.call('HGET', base .. ':r', key) or '0')
        isParked = running[key] >= keyLimit
      end
      if not state or isParked then
        lane.gone[#lane.gone + 1] = member
        if isParked then
          local priority, due = string.match(first, '^(%S+)\\n(%S+)')
          local score = text((9 - tonumber(priority)) * 1e14 + tonumber(due))
          redis.call('ZADD', base .. ':k:' .. key, score, lane.name .. '\\n' .. member)
          redis.call('SADD', base .. ':ks', key)
        end
      elseif perMs and not isWithinRate(tenant) then
        lane.at = lane.at - 1
        lane.isDone = true
        lane.some = {}
        return false
      else
        if key ~= '' then
          local count = redis.call('HINCRBY', base .. ':r', key, 1)
          if keyLimit then running[key] = count end
        end
        if state == 'W' or state == 'S' then
          zrem(stateKeys[state], suffix)
          if state == 'S' then zrem(dueKey, suffix) end
        end
        record = 'R\\n' .. nextOf(revision) .. '\\n' .. nextOf(fence) .. '\\n' .. first .. deadlineLine .. cancel
          .. claimedLines .. second .. workerLine .. string.sub(record, rest)
        set(recordKey, record)
        zadd(runningKey, cancel ~= '0' and tonumber(cancel) < deadlineMs and cancel or deadline, suffix)
        found[#found + 1] = {suffix, record, ''}
        foundIds[#foundIds + 1] = suffix
        if hash ~= '' then hashed[#hashed + 1] = #found end
        lane.gone[#lane.gone + 1] = member
        served = served + 1
        lane.served = served
        need = need - 1
        return true
      end
    end
  end
  local window = limit + 8
  local offset, some, at, visited = 0, {}, 1, 0
  local function nextLane()
    if at > #some then
      if visited >= ${lanesMax} or (offset > 0 and #some < window) then return nil end
      some = redis.call('ZRANGE', base .. ':l', offset, offset + window - 1)
      offset, at = offset + #some, 1
    end
    return some[at]
  end
  while need > 0 do
    local name = nextLane()
    if not name then break end
    local level = string.sub(name, 1, 1)
    local round = {}
    while need > 0 do
      name = nextLane()
      if not name or string.sub(name, 1, 1) ~= level then break end
      at, visited = at + 1, visited + 1
      local lane = {name = name, key = base .. ':q:' .. name, some = {}, at = 1, skip = 0, gone = {}}
      states[#states + 1] = lane
      if takeOne(lane, math.max(1, math.ceil(need / #some))) then round[#round + 1] = lane end
    end
    while need > 0 and #round > 0 do
      local left = {}
      for _, lane in ipairs(round) do
        if need == 0 then break end
        if takeOne(lane, need) then left[#left + 1] = lane end
      end
      round = left
    end
  end
  local last = served > 0 and redis.call('HINCRBY', base, 'n', served) or 0
  for _, lane in ipairs(states) do
    for first = 1, #lane.gone, ${someMax} do
      redis.call('ZREM', lane.key, unpack(lane.gone, first, math.min(first + ${someMax - 1}, #lane.gone)))
    end
    local turn = lane.served and last - served + lane.served
    if redis.call('EXISTS', lane.key) == 0 then
      redis.call('ZREM', base .. ':l', lane.name)
      openLanes[lane.name] = nil
      if turn then redis.call('HSET', base .. ':t', lane.name, text(turn)) end
    elseif turn then redis.call('ZADD', base .. ':l', laneScore(lane.name, turn), lane.name) end
  end
  flush()
  for at, fixed in ipairs(readAll(fixes, foundIds)) do found[at][3] = fixed or '' end
  for _, at in ipairs(hashed) do
    local job = found[at]
    for _, cell in ipairs(redis.call('HGETALL', hashes .. job[1])) do job[#job + 1] = cell end
  end
  if later and later < 8.64e15 then free(later) end
  return {found, need == 0 and 1 or 0, text(freeAt), served}
end`;

/** Signals in the step that changes a record, where their stream lies in one slot with it. */
export const luaTell = `local told, marked = {}, {}
local function tell(stream, mark, registry, subject, data)
  told[subject] = true
  if not marked[subject] then
    marked[subject] = true
    if redis.call('EXISTS', mark) == 0 then
      local time = redis.call('TIME')
      redis.call('SET', mark, time[1] .. '.' .. time[2])
      if registry ~= '' then register(registry, subject) end
    end
  end
  return redis.call('XADD', stream, '*', 'data', data)
end
local function announce(channel)
  local words = {'s'}
  for subject in pairs(told) do words[#words + 1] = subject end
  if #words > 1 then redis.call('PUBLISH', channel, table.concat(words, ' ')) end
end`;
