-- @include "lanes"
-- Limits of one claim: the due jobs that are moved to their lanes, and the lanes that are visited.
local PROMOTE_ROUNDS, PROMOTE_MAX, LANES_MAX = 10, 500, 2000
-- Captures the parts of a record that a claim keeps. The claim replaces all other fields.
local CLAIM_PATTERN = '^(%a)\n(%d+)\n(%d+)\n' -- state, revision, fence
  .. '(%S+\n%S+\n%S+\n)' -- priority, dueAtMs and failures, which stay
  .. '%S+\n(%S+)\n%S+\n%S+\n' -- cancelAtMs; deadlineMs, claimedAtMs and updatedAtMs change
  .. '(%S+\n[^\n]*\n[^\n]*\n)' -- endedAtMs and both signals, which stay
  .. '[^\n]*\n()' -- the worker changes; position of the fields after it, which stay
  .. '%S+\n([^\n]*)\n([^\n]*)\n([^\n]*)\n' -- tenant, concurrencyKey, hasHash
local increments = {}
local function incremented(digits)
  local number = increments[digits]
  if not number then
    number = text(digits + 1)
    increments[digits] = number
  end
  return number
end
-- A rule is `<limit> <deadline> <key limit> <rate count> <rate span in ms> <whether the rate is per tenant>`.
local function parseRule(rule)
  local limit, deadline, keyLimit, rateCount, ratePerMs, isPerTenant =
    string.match(rule, '^(%S*) (%S*) (%S*) (%S*) (%S*) (%S*)$')
  return {
    limit = tonumber(limit), deadline = deadline, keyLimit = keyLimit,
    rateCount = tonumber(rateCount), ratePerMs = tonumber(ratePerMs), isPerTenant = isPerTenant == '1',
  }
end
local function unblockAll()
  for _, key in ipairs(redis.call('SMEMBERS', base .. BLOCKING_KEYS)) do
    for _ = 1, BATCH_MAX do if not unblock(key) then break end end
  end
end
local function nextLaterMs()
  local score = redis.call('ZRANGE', base .. LATER, 0, 0, 'WITHSCORES')[2]
  return score and tonumber(score)
end
-- Moves jobs that became due from LATER to their lanes.
local function promote(nowText)
  for _ = 1, PROMOTE_ROUNDS do
    local due = redis.call('ZRANGEBYSCORE', base .. LATER, '-inf', nowText, 'WITHSCORES', 'LIMIT', 0, PROMOTE_MAX)
    if #due == 0 then return end
    local moved = {}
    for at = 1, #due, 2 do
      local lane, member = string.match(due[at], '^([^\n]*)\n(.*)$')
      moved[#moved + 1] = due[at]
      redis.call('ZADD', base .. LANE .. lane, due[at + 1], member)
      openLane(lane)
    end
    redis.call('ZREM', base .. LATER, unpack(moved))
    if #moved < PROMOTE_MAX then return end
  end
end
-- Claims the next jobs for a worker. Returns the jobs (as `unpackTask` reads them), whether more may be available
-- now (1 or 0), when more may be available (-1: unknown), and the number of jobs.
local function claim(now, nowText, worker, rule)
  local keyLimit, perMs = tonumber(rule.keyLimit), rule.ratePerMs
  local eachMs = perMs and perMs / rule.rateCount
  local settings = redis.call('HMGET', base, 'mode', 'keys')
  if settings[1] == 'paused' then return {{}, 0, -1, 0} end
  if (settings[2] or '') ~= rule.keyLimit then
    redis.call('HSET', base, 'keys', rule.keyLimit)
    unblockAll()
  end
  local laterMs = nextLaterMs()
  if laterMs and laterMs <= now then
    promote(nowText)
    laterMs = nextLaterMs()
  end
  local found, freeAt, served, need = {}, -1, 0, rule.limit
  local foundIds, hashed, deadlineMs = {}, {}, tonumber(rule.deadline)
  local deadlineLine, workerLine = rule.deadline .. '\n', worker .. '\n'
  local claimedLines = '\n' .. nowText .. '\n' .. nowText .. '\n'
  local rates, running, visited = {}, {}, {}
  local function retryAt(ms) if freeAt < 0 or ms < freeAt then freeAt = ms end end
  local function isWithinRate(tenant)
    local bucket = rule.isPerTenant and '=' .. tenant or ''
    local fullAt = rates[bucket]
    if not fullAt then fullAt = tonumber(redis.call('HGET', base .. RATES, bucket) or '0') end
    local began = math.max(fullAt, now)
    if math.floor((now + perMs - began) / eachMs + 1e-6) < 1 then
      retryAt(math.max(now, math.ceil(fullAt + eachMs - perMs)))
      rates[bucket] = fullAt
      return false
    end
    rates[bucket] = began + eachMs
    redis.call('HSET', base .. RATES, bucket, string.format('%.17g', began + eachMs))
    return true
  end
  -- Reads the next jobs of a lane. Returns false if the lane has no more due jobs.
  local function readLane(lane, count)
    if lane.isDone then return false end
    lane.members = redis.call('ZRANGEBYSCORE', lane.key, '-inf', nowText, 'LIMIT', lane.skip, count)
    lane.skip = lane.skip + #lane.members
    lane.at = 1
    if #lane.members < count then lane.isDone = true end
    if #lane.members == 0 then return false end
    lane.ids = {}
    for n, member in ipairs(lane.members) do lane.ids[n] = string.sub(member, 15) end
    lane.records, lane.recordKeys = readAll(recordPrefix, lane.ids)
    return true
  end
  local function takeOne(lane, count)
    while true do
      if lane.at > #lane.members and not readLane(lane, count) then return false end
      local member = lane.members[lane.at]
      local id, record, recordKey = lane.ids[lane.at], lane.records[lane.at], lane.recordKeys[lane.at]
      lane.at = lane.at + 1
      local state, revision, fence, order, cancelAt, signals, restAt, tenant, key, hasHash
      if record then
        state, revision, fence, order, cancelAt, signals, restAt, tenant, key, hasHash =
          string.match(record, CLAIM_PATTERN)
      end
      if record and not state then
        markDamaged(id, record)
        zrem(stateKeys[WAITING], id)
        zrem(stateKeys[SCHEDULED], id)
        zrem(scheduledKey, id)
        record = damagedRecord(string.sub(lane.name, 1, 1), text(tonumber(string.sub(member, 1, 14))), string.sub(lane.name, 3))
        state, revision, fence, order, cancelAt, signals, restAt, tenant, key, hasHash =
          string.match(record, CLAIM_PATTERN)
      end
      local isBlocked = false
      if state and keyLimit and key ~= '' then
        running[key] = running[key] or tonumber(redis.call('HGET', base .. KEY_COUNTS, key) or '0')
        isBlocked = running[key] >= keyLimit
      end
      if not state or isBlocked then
        lane.removed[#lane.removed + 1] = member
        if isBlocked then
          local priority, dueAt = string.match(order, '^(%S+)\n(%S+)')
          local score = text(blockedScore(priority, tonumber(dueAt)))
          redis.call('ZADD', base .. BLOCKED .. key, score, lane.name .. '\n' .. member)
          redis.call('SADD', base .. BLOCKING_KEYS, key)
        end
      elseif perMs and not isWithinRate(tenant) then
        lane.at = lane.at - 1
        lane.isDone = true
        lane.members = {}
        return false
      else
        if key ~= '' then
          local count = redis.call('HINCRBY', base .. KEY_COUNTS, key, 1)
          if keyLimit then running[key] = count end
        end
        if state == WAITING or state == SCHEDULED then
          zrem(stateKeys[state], id)
          if state == SCHEDULED then zrem(scheduledKey, id) end
        end
        record = RUNNING .. '\n' .. incremented(revision) .. '\n' .. incremented(fence) .. '\n' .. order
          .. deadlineLine .. cancelAt .. claimedLines .. signals .. workerLine .. string.sub(record, restAt)
        set(recordKey, record)
        zadd(runningKey, cancelAt ~= '0' and tonumber(cancelAt) < deadlineMs and cancelAt or rule.deadline, id)
        found[#found + 1] = {id, record, ''}
        foundIds[#foundIds + 1] = id
        if hasHash ~= '' then hashed[#hashed + 1] = #found end
        lane.removed[#lane.removed + 1] = member
        served = served + 1
        lane.served = served
        need = need - 1
        return true
      end
    end
  end
  local window = rule.limit + 8
  local offset, names, at, count = 0, {}, 1, 0
  local function nextLane()
    if at > #names then
      if count >= LANES_MAX or (offset > 0 and #names < window) then return nil end
      names = redis.call('ZRANGE', base .. LANES, offset, offset + window - 1)
      offset, at = offset + #names, 1
    end
    return names[at]
  end
  -- Lanes of one priority take turns: each round claims one job per lane and drops the lanes without jobs.
  while need > 0 do
    local name = nextLane()
    if not name then break end
    local priority = string.sub(name, 1, 1)
    local round = {}
    while need > 0 do
      name = nextLane()
      if not name or string.sub(name, 1, 1) ~= priority then break end
      at, count = at + 1, count + 1
      local lane = {name = name, key = base .. LANE .. name, members = {}, at = 1, skip = 0, removed = {}}
      visited[#visited + 1] = lane
      if takeOne(lane, math.max(1, math.ceil(need / #names))) then round[#round + 1] = lane end
    end
    while need > 0 and #round > 0 do
      local remaining = {}
      for _, lane in ipairs(round) do
        if need == 0 then break end
        if takeOne(lane, need) then remaining[#remaining + 1] = lane end
      end
      round = remaining
    end
  end
  local lastTurn = served > 0 and redis.call('HINCRBY', base, 'n', served) or 0
  for _, lane in ipairs(visited) do
    local removed = lane.removed
    for from = 1, #removed, BATCH_MAX do
      redis.call('ZREM', lane.key, unpack(removed, from, math.min(from + BATCH_MAX - 1, #removed)))
    end
    local turn = lane.served and lastTurn - served + lane.served
    if redis.call('EXISTS', lane.key) == 0 then
      redis.call('ZREM', base .. LANES, lane.name)
      openLanes[lane.name] = nil
      if turn then redis.call('HSET', base .. TURNS, lane.name, text(turn)) end
    elseif turn then redis.call('ZADD', base .. LANES, laneScore(lane.name, turn), lane.name) end
  end
  flush()
  for n, fixed in ipairs(readAll(fixedPrefix, foundIds)) do found[n][3] = fixed or '' end
  for _, n in ipairs(hashed) do
    local job = found[n]
    for _, cell in ipairs(redis.call('HGETALL', hashPrefix .. job[1])) do job[#job + 1] = cell end
  end
  if laterMs and laterMs < 8.64e15 then retryAt(laterMs) end
  return {found, need == 0 and 1 or 0, text(freeAt), served}
end
