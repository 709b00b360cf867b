-- Changes jobs, then claims the next ones.
--
-- KEYS: base, never, then queue, terminal and progress stream, each with its mark (the last two only if they share the
-- slot of the type).
-- ARGV: now, channel of the bus, registry or '', the three subjects, channel of the workers, hash of workers or '',
-- worker, until when it is alive, rule of the claim or '', whether the queue stream is registered (1 or 0), the ids in
-- lines; then the changes. Few values are faster than many, so a change is:
-- - one value with the lines fence, revision, number of fields to set, of fields to remove and of signals, and the
--   lines of `packChange`; or, if it replaces the whole record, `=` and the words number of fields to set, of fields to
--   remove and of signals, state, two times and worker (`wholeOf`), followed by three values: the expected start of the
--   record, its new lines before the signal fields, and after them;
-- - name and value of each field to set;
-- - the name of each field to remove;
-- - of each signal the number of its stream (1 to 3) with its place in the job, and its data.
-- Returns the outcome of each change (the new revision; the current record if the guard failed; false without a
-- job), and the result of the claim; false if the queue stream must be registered first.
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
local WHOLE_PATTERN = '^=(%d+) (%d+) (%d+) (%a) (%d*) (%d*) (.*)$'
local SIGNALS_PATTERN = '^%a\n%S+\n%S+\n%S+\n%S+\n%S+\n%S+\n%S+\n%S+\n%S+\n%S+\n([^\n]*)\n([^\n]*)\n'
local EQUALS_SIGN = 61

local result, isChanged, isRejected = {}, {}, {}
-- How many running jobs each worker has lost.
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
-- Writes fields and signals, whose values end before `at`. Queue and terminal signals are returned in `places`.
local function writeFields(id, setsAt, removesAt, signalsAt, places)
  local fields
  if removesAt > setsAt then fields = {unpack(ARGV, setsAt, removesAt - 1)} end
  for signalAt = signalsAt, at - 1, 2 do
    local stream = string.byte(ARGV[signalAt]) - 48
    local place = string.sub(ARGV[signalAt], 2)
    local signalId = publishSignal(
      KEYS[1 + stream * 2], KEYS[2 + stream * 2], registry, ARGV[FIRST_SUBJECT - 1 + stream], ARGV[signalAt + 1])
    if stream < 3 then places[stream] = place .. ':' .. signalId
    else
      fields = fields or {}
      fields[#fields + 1] = '~' .. place
      fields[#fields + 1] = signalId
    end
  end
  if fields then redis.call('HSET', hashPrefix .. id, unpack(fields)) end
  if signalsAt > removesAt then
    redis.call('HDEL', hashPrefix .. id, unpack(ARGV, removesAt, signalsAt - 1))
  end
end
-- Replaces the record if it is still the one that the worker knows.
local function replace(record, key, id, words)
  local sets, removes, signals, state, first, second, holder = string.match(words, WHOLE_PATTERN)
  local expected, before, after = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local setsAt = at + 4
  local removesAt = setsAt + sets * 2
  local signalsAt = removesAt + removes
  at = signalsAt + signals * 2
  if not record then return false end
  if isRejected[id] or string.sub(record, 1, #expected) ~= expected then
    isRejected[id] = true
    return record
  end
  isChanged[id] = true
  if state ~= RUNNING then
    local enqueuedAt, endedAt = first, second
    zrem(runningKey, id)
    zrem(openKey, id)
    zadd(stateKeys[state], enqueuedAt, id)
    zadd(endedKey, endedAt, id)
    lost[holder] = (lost[holder] or 0) + 1
  elseif first ~= '' then zadd(runningKey, first, id) end
  local places = {string.match(record, SIGNALS_PATTERN)}
  writeFields(id, setsAt, removesAt, signalsAt, places)
  set(key, before .. places[1] .. '\n' .. places[2] .. '\n' .. after)
  return tonumber(string.match(before, '^%a\n(%d+)'))
end
-- Changes the given fields of the record if the guard holds.
local function merge(record, key, id, lines)
  local fence, revision, sets, removes, signals, state, newFence, priority, dueAt, failures, deadline, cancelAt,
    endedAt, newWorker, runAt = string.match(lines, CHANGE_PATTERN)
  local setsAt = at + 1
  local removesAt = setsAt + sets * 2
  local signalsAt = removesAt + removes
  at = signalsAt + signals * 2
  local job = record and {string.match(record, RECORD_PATTERN)}
  if not job then return false end
  local isStale = (fence ~= '' and (job[F.state] ~= RUNNING or job[F.fence] ~= fence))
    or (revision ~= '' and job[F.revision] ~= revision)
  if isStale or isRejected[id] then return record end
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
  local places = {job[F.queueSignal], job[F.terminalSignal]}
  writeFields(id, setsAt, removesAt, signalsAt, places)
  job[F.queueSignal], job[F.terminalSignal] = places[1], places[2]
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
  local lines = ARGV[at]
  local change = string.byte(lines) == EQUALS_SIGN and replace or merge
  result[n] = change(record, recordKeys[n], id, lines)
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
