-- Changes jobs of one type, then claims the next ones.
--
-- KEYS: base, never, then the queue, terminal and progress streams, each followed by its mark. The terminal and the
-- progress stream are passed only if they share the slot of the type.
--
-- ARGV:
--   1      current time
--   2      channel of the bus
--   3      registry or ''
--   4-6    subjects of the queue, terminal and progress streams
--   7      channel of the workers
--   8      hash of workers or ''
--   9      worker that claims
--   10     time until which this worker counts as alive
--   11     rule of the claim or ''
--   12     whether the queue stream is registered (1 or 0)
--   13     ids of the changed jobs, one per line
--   14...  values of the changes, in the order of the ids
--
-- A change packs most of its parts into one value, because Redis parses few arguments faster than many. Its values are:
--   1. The lines fence, revision, number of fields to set, number of fields to remove and number of signals, then the
--      lines of `packChange`.
--   2. Name and value of each field to set.
--   3. Name of each field to remove.
--   4. Two values per signal: the number of its stream (1 to 3) followed by its key (`signalKey`), and its data.
--
-- Returns the outcome of each change, then the result of the claim. An outcome is the new revision, the current record
-- if the guard failed, or false if the job does not exist. Returns false if the queue stream must be registered first.
-- @include "include/signals"
-- @include "include/claim"
local FIRST_SUBJECT, IDS, FIRST_CHANGE = 4, 13, 14
local nowText, channel, registry, queueSubject = unpack(ARGV, 1, 4)
local workerChannel, workers, worker, aliveUntil, rule, isRegistered = unpack(ARGV, 7, 12)
local now = tonumber(nowText)
if isRegistered == '0' and registry == '' and redis.call('EXISTS', KEYS[4]) == 0 then return false end
local CHANGE_PATTERN = '^(%d*)\n(%d*)\n(%d*)\n(%d*)\n(%d*)\n' -- fence, revision, fields set, removed, signals
  .. '(%a?)\n(%S*)\n(%S*)\n(%S*)\n(%S*)\n' -- state, new fence, priority, dueAtMs, failures
  .. '(%S*)\n(%S*)\n(%S*)\n([^\n]*)\n()' -- deadlineMs, cancelAtMs, endedAtMs, worker, position of the run

local result, isChanged = {}, {}
-- The number of running jobs that each worker lost in this call.
local lost = {}
local at = FIRST_CHANGE
local function overdueAt(job)
  local cancelAt, deadline = job[F.cancelAtMs], job[F.deadlineMs]
  return cancelAt ~= '0' and tonumber(cancelAt) < tonumber(deadline) and cancelAt or deadline
end
-- Removes a job from the sets of its old state.
local function leaveState(job, id)
  local state = job[F.state]
  if state == RUNNING then
    zrem(runningKey, id)
    lost[job[F.worker]] = (lost[job[F.worker]] or 0) + 1
    if job[F.concurrencyKey] ~= '' then releaseKey(job[F.concurrencyKey]) end
    return
  end
  if state == SCHEDULED then zrem(scheduledKey, id) end
  if isEnded(state) then
    zrem(endedKey, id)
    zrem(stateKeys[state], id)
    zadd(openKey, job[F.enqueuedAtMs], id)
  else
    removeFromLane(job, id)
    if state ~= QUEUED then zrem(stateKeys[state], id) end
  end
end
-- Adds a job to the sets of its new state.
local function enterState(job, id)
  local state = job[F.state]
  if state == RUNNING then
    zadd(runningKey, overdueAt(job), id)
    if job[F.concurrencyKey] ~= '' then
      redis.call('HINCRBY', base .. KEY_COUNTS, job[F.concurrencyKey], 1)
    end
    lost[job[F.worker]] = (lost[job[F.worker]] or 0) - 1
    return
  end
  job[F.worker] = ''
  if isEnded(state) then
    zrem(openKey, id)
    zadd(stateKeys[state], job[F.enqueuedAtMs], id)
    zadd(endedKey, job[F.endedAtMs], id)
  else
    if state ~= QUEUED then zadd(stateKeys[state], job[F.enqueuedAtMs], id) end
    if state == SCHEDULED then zadd(scheduledKey, job[F.dueAtMs], id) end
    addToLane(job, id, now)
  end
end
-- Writes fields and signals. The last value of the signals is at `at - 1`. Updates the ids of the queue and the terminal
-- signal in `signalFields`.
local function writeFields(id, setsAt, removesAt, signalsAt, signalFields)
  local fields
  if removesAt > setsAt then fields = {unpack(ARGV, setsAt, removesAt - 1)} end
  for signalAt = signalsAt, at - 1, 2 do
    local stream = string.byte(ARGV[signalAt]) - 48
    local signalKey = string.sub(ARGV[signalAt], 2)
    local signalId = publishSignal(
      KEYS[1 + stream * 2], KEYS[2 + stream * 2], registry, ARGV[FIRST_SUBJECT - 1 + stream], ARGV[signalAt + 1])
    if stream < 3 then signalFields[stream] = signalKey .. ':' .. signalId
    else
      fields = fields or {}
      fields[#fields + 1] = '~' .. signalKey
      fields[#fields + 1] = signalId
    end
  end
  if fields then redis.call('HSET', hashPrefix .. id, unpack(fields)) end
  if signalsAt > removesAt then
    redis.call('HDEL', hashPrefix .. id, unpack(ARGV, removesAt, signalsAt - 1))
  end
end
-- Changes the given fields of the record if the guard holds.
local function change(record, key, id, lines)
  local fence, revision, sets, removes, signals, state, newFence, priority, dueAt, failures, deadline, cancelAt,
    endedAt, newWorker, runAt = string.match(lines, CHANGE_PATTERN)
  local setsAt = at + 1
  local removesAt = setsAt + sets * 2
  local signalsAt = removesAt + removes
  at = signalsAt + signals * 2
  if not record then return false end
  local job = {string.match(record, RECORD_PATTERN)}
  if not job[1] then
    markDamaged(id, record)
    zrem(runningKey, id)
    record = damagedRecord('0', '0', '')
    job = {string.match(record, RECORD_PATTERN)}
  end
  local isStale = (fence ~= '' and (job[F.state] ~= RUNNING or job[F.fence] ~= fence))
    or (revision ~= '' and job[F.revision] ~= revision)
  if isStale then return record end
  isChanged[id] = true
  local restAt = job[F.rest]
  if runAt > #lines then job[F.rest] = string.sub(record, restAt)
  else
    local _, labelsEnd = string.find(record, '\n\n', restAt, true)
    job[F.rest] = string.sub(record, restAt, labelsEnd) .. string.sub(lines, runAt)
  end
  if state == '' then state = job[F.state] end
  local isMoved = state ~= job[F.state] or (state ~= RUNNING and (dueAt ~= '' or priority ~= ''))
  if isMoved then leaveState(job, id) end
  if newFence ~= '' then job[F.fence] = newFence end
  if priority ~= '' then job[F.priority] = priority end
  if dueAt ~= '' then job[F.dueAtMs] = dueAt end
  if failures ~= '' then job[F.failures] = failures end
  if deadline ~= '' then job[F.deadlineMs] = deadline end
  if cancelAt ~= '' then job[F.cancelAtMs] = cancelAt end
  if endedAt ~= '' then job[F.endedAtMs] = endedAt end
  if newWorker ~= '' then job[F.worker] = string.sub(newWorker, 2) end
  job[F.state], job[F.revision], job[F.updatedAtMs] = state, incremented(job[F.revision]), nowText
  if isMoved then enterState(job, id)
  elseif state == RUNNING and (deadline ~= '' or cancelAt ~= '') then zadd(runningKey, overdueAt(job), id) end
  if removesAt > setsAt then job[F.hasHash] = '1' end
  local signalFields = {job[F.queueSignal], job[F.terminalSignal]}
  writeFields(id, setsAt, removesAt, signalsAt, signalFields)
  job[F.queueSignal], job[F.terminalSignal] = signalFields[1], signalFields[2]
  set(key, formatRecord(job))
  return tonumber(job[F.revision])
end

local ids = {}
for id in string.gmatch(ARGV[IDS], '([^\n]+)') do ids[#ids + 1] = id end
local records, recordKeys = readAll(recordPrefix, ids)
for n, id in ipairs(ids) do
  local record = records[n]
  if isChanged[id] then
    flush()
    record = redis.call('GET', recordKeys[n])
  end
  result[n] = change(record, recordKeys[n], id, ARGV[at])
end
flush()
local claimed = {{}, 0, '-1', 0}
if rule ~= '' then
  redis.call('HSET', workers == '' and base .. WORKERS or workers, worker, aliveUntil)
  claimed = claim(now, nowText, worker, parseRule(rule))
  lost[worker] = (lost[worker] or 0) - claimed[4]
end
for name, count in pairs(lost) do
  if count ~= 0 and redis.call('HINCRBY', base .. WORKER_COUNTS, name, -count) <= 0 then
    redis.call('HDEL', base .. WORKER_COUNTS, name)
  end
end
wakeReaders(channel)
wakeWorkers(workerChannel, queueSubject)
return {result, claimed[1], claimed[2], claimed[3]}
