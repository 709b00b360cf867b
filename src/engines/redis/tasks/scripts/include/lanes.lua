-- @include "record"
-- @include "batch"
local hasNewWork = false
local function wakeWorkers(workerChannel, queueSubject)
  if hasNewWork then redis.call('PUBLISH', workerChannel, 's ' .. queueSubject) end
end
local openLanes = {}
-- Lanes with a lower score are served first: priority 9 before 0, then the lane that was served the longest ago.
local function laneScore(lane, turn)
  return text((9 - tonumber(string.sub(lane, 1, 1))) * 4e14 + 1e14 + turn)
end
-- A lane that was never served gets a negative turn, which puts it before all served lanes, in order of arrival.
local function openLane(lane)
  if openLanes[lane] then return end
  openLanes[lane] = true
  local turn = redis.call('HGET', base .. TURNS, lane)
  if not turn and redis.call('ZSCORE', base .. LANES, lane) then return end
  turn = turn and tonumber(turn) or redis.call('HINCRBY', base, 'n', 1) - 1e14
  redis.call('ZADD', base .. LANES, 'NX', laneScore(lane, turn), lane)
end
-- A member of a lane is the enqueue time, padded to 14 digits, and the id.
local function laneMember(job, id)
  local enqueuedAt = job[F.enqueuedAtMs]
  return job[F.priority] .. ':' .. job[F.tenant], string.rep('0', 14 - #enqueuedAt) .. enqueuedAt .. id
end
local function addToLane(job, id, now)
  local lane, member = laneMember(job, id)
  local dueAt = job[F.dueAtMs]
  hasNewWork = true
  if tonumber(dueAt) > now then zadd(base .. LATER, dueAt, lane .. '\n' .. member) return end
  zadd(base .. LANE .. lane, dueAt, member)
  openLane(lane)
end
-- The score of a blocked job: priority first, then due time.
local function blockedScore(priority, dueAt) return (9 - tonumber(priority)) * 1e14 + dueAt end
-- Moves the first job that is blocked by the concurrency key back to its lane. Returns whether the key blocked a job.
local function unblock(key)
  local blocked = base .. BLOCKED .. key
  local first = redis.call('ZRANGE', blocked, 0, 0, 'WITHSCORES')
  if not first[1] then redis.call('SREM', base .. BLOCKING_KEYS, key) return false end
  redis.call('ZREM', blocked, first[1])
  local lane, member = string.match(first[1], '^([^\n]*)\n(.*)$')
  local dueAt = tonumber(first[2]) - blockedScore(string.sub(lane, 1, 1), 0)
  redis.call('ZADD', base .. LANE .. lane, text(dueAt), member)
  openLane(lane)
  hasNewWork = true
  return true
end
local function removeFromLane(job, id)
  local lane, member = laneMember(job, id)
  local key = job[F.concurrencyKey]
  if redis.call('ZREM', base .. LANE .. lane, member) == 1 then
    if key ~= '' then unblock(key) end
  elseif redis.call('ZREM', base .. LATER, lane .. '\n' .. member) == 0 and key ~= '' then
    redis.call('ZREM', base .. BLOCKED .. key, lane .. '\n' .. member)
  end
end
local function releaseKey(key)
  if redis.call('HINCRBY', base .. KEY_COUNTS, key, -1) <= 0 then
    redis.call('HDEL', base .. KEY_COUNTS, key)
  end
  unblock(key)
end
