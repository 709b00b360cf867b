// What the scripts of tasks share: heads, the order of what waits, and who is next. KEYS[1] is the base of
// a type; its other keys begin with it:
//
// - `:j:<id>`: a job. `:o`: all that are open, `:s:<state>`: those that wait, are scheduled or have ended,
//   by when they were enqueued. `:e`: what has ended, by when. `:u`: what is scheduled, by when it is due.
// - `:x`: what runs, by when it is overdue. `:n`: how many a worker has. `:b`: until when it is alive.
// - `:q:<priority>:<tenant>`: a lane, what is due, by when. `:l`: the lanes that are not empty, by priority
//   and by whose turn it is. `:t`: the turn of a lane that is empty. `:d`: what is due later.
// - `:r`: how many run of a concurrency key. `:k:<key>`: what waits for one, `:ks`: such keys.
// - `:f`: when rates are full. `:w`, `:wz`: dedupe keys, and when they are over. `:c:<job>`: its children.

/** More of them in one command, and Lua's stack is full. */
const someMax = 1_000;

export const luaHeads = `local base = KEYS[1]
local jobs = base .. ':j:'
local headPattern = '^${'([^\\n]*)\\n'.repeat(17)}(.*)$'
local function text(number) return string.format('%.0f', number) end
local adds, rems = {}, {}
local function flush()
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
  adds, rems = {}, {}
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
local known = {}
local function laneScore(lane, turn)
  return text((9 - tonumber(string.sub(lane, 1, 1))) * 4e14 + 1e14 + turn)
end
local function openLane(lane)
  if known[lane] then return end
  known[lane] = true
  if redis.call('ZSCORE', base .. ':l', lane) then return end
  local turn = redis.call('HGET', base .. ':t', lane)
  turn = turn and tonumber(turn) or redis.call('HINCRBY', base, 'n', 1) - 1e14
  redis.call('ZADD', base .. ':l', laneScore(lane, turn), lane)
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
 * Answers the jobs (as `unpackClaimed` reads them), whether there may be more at once, when there may be
 * more (-1: nobody knows), and how many they are. `rule`: limit, deadline, key limit, count, span and kind
 * of the rate.
 */
export const luaClaim = `local function unparkAll()
  for _, key in ipairs(redis.call('SMEMBERS', base .. ':ks')) do
    for _ = 1, ${someMax} do if not unpark(key) then break end end
  end
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
  promote(nowText)
  local found, freeAt, served, need = {}, -1, 0, limit
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
      end
      local member = lane.some[lane.at]
      lane.at = lane.at + 1
      local suffix = string.sub(member, 15)
      local jobKey = jobs .. suffix
      local cells = redis.call('HGETALL', jobKey)
      local job, head = {suffix, '', '', ''}, nil
      for at = 1, #cells, 2 do
        local name = cells[at]
        if name == 'h' then head = cells[at + 1]
        elseif name == 'p' then job[3] = cells[at + 1]
        elseif name == 'r' then job[4] = cells[at + 1]
        elseif string.byte(name) ~= 126 then
          job[#job + 1] = name
          job[#job + 1] = cells[at + 1]
        end
      end
      local t = head and {string.match(head, headPattern)}
      local key = t and t[17] or ''
      local isParked = false
      if keyLimit and key ~= '' then
        running[key] = running[key] or tonumber(redis.call('HGET', base .. ':r', key) or '0')
        isParked = running[key] >= keyLimit
      end
      if not t or isParked then
        lane.gone[#lane.gone + 1] = member
        if isParked then
          local score = text((9 - tonumber(t[4])) * 1e14 + tonumber(t[5]))
          redis.call('ZADD', base .. ':k:' .. key, score, lane.name .. '\\n' .. member)
          redis.call('SADD', base .. ':ks', key)
        end
      elseif perMs and not isWithinRate(t[16]) then
        lane.at = lane.at - 1
        lane.isDone = true
        lane.some = {}
        return false
      else
        if key ~= '' then
          local count = redis.call('HINCRBY', base .. ':r', key, 1)
          if keyLimit then running[key] = count end
        end
        if t[1] == 'W' or t[1] == 'S' then
          zrem(base .. ':s:' .. t[1], suffix)
          if t[1] == 'S' then zrem(base .. ':u', suffix) end
        end
        t[1], t[2], t[3], t[7] = 'R', tonumber(t[2]) + 1, tonumber(t[3]) + 1, deadline
        t[9], t[10], t[14] = nowText, nowText, worker
        job[2] = table.concat(t, '\\n')
        redis.call('HSET', jobKey, 'h', job[2])
        zadd(base .. ':x', t[8] ~= '0' and tonumber(t[8]) < tonumber(deadline) and t[8] or deadline, suffix)
        found[#found + 1] = job
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
      if visited >= ${lanesMax} then return nil end
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
      known[lane.name] = nil
      if turn then redis.call('HSET', base .. ':t', lane.name, text(turn)) end
    elseif turn then redis.call('ZADD', base .. ':l', laneScore(lane.name, turn), lane.name) end
  end
  flush()
  local later = redis.call('ZRANGE', base .. ':d', 0, 0, 'WITHSCORES')[2]
  if later and tonumber(later) < 8.64e15 then free(tonumber(later)) end
  return {found, need == 0 and 1 or 0, text(freeAt), served}
end`;

/** Signals in the step that changes a record, where their stream lies in one slot with it. */
export const luaTell = `local told = {}
local function tell(stream, mark, registry, subject, data)
  if not told[subject] then
    told[subject] = true
    if redis.call('EXISTS', mark) == 0 then
      local time = redis.call('TIME')
      redis.call('SET', mark, time[1] .. '.' .. time[2])
      if registry ~= '' then register(registry, subject) end
    end
  end
  return redis.call('XADD', stream, '*', 'data', data)
end
local function announce(channel, queueSubject)
  if isNews then told[queueSubject] = true end
  local words = {'s'}
  for subject in pairs(told) do words[#words + 1] = subject end
  if #words > 1 then redis.call('PUBLISH', channel, table.concat(words, ' ')) end
end`;
