-- KEYS: base, never, queue stream, its mark.
-- ARGV: now, channel of the bus, registry or '', queue subject, channel of the workers, whether the type is registered
-- (1 or 0); then for each job: id, record, fixed part, queue signal or '', dedupe key or '', expiry of the dedupe key
-- or '', parent or ''.
-- Returns for each job 1 (enqueued), the id of the existing job, or 0 (draining). Returns false if a new type or stream
-- must be registered first.
-- @include "include/signals"
-- @include "include/lanes"
local FIRST_JOB, JOB_VALUES = 7, 7
local nowText, channel, registry, subject, workerChannel, isRegistered = unpack(ARGV, 1, FIRST_JOB - 1)
local now = tonumber(nowText)
local settings = redis.call('HMGET', base, 'mode', 'ready')
local isDraining, isReady = settings[1] == 'draining', settings[2]
if isRegistered == '1' then
  if not isReady then redis.call('HSET', base, 'ready', 1) end
elseif not isReady or redis.call('EXISTS', KEYS[4]) == 0 then return false
else hasMark[subject] = true end

-- Takes the dedupe key for this job, or returns the id of the job that already has the key.
local function takeDedupeKey(key, untilMs, id)
  local expiry, holder = string.match(redis.call('HGET', base .. DEDUPE, key) or '', '^(%d+) (.*)$')
  if expiry and tonumber(expiry) > now then return holder end
  redis.call('HSET', base .. DEDUPE, key, untilMs .. ' ' .. id)
  redis.call('ZADD', base .. DEDUPE_EXPIRY, untilMs, key)
end

local function add(id, record, fixed, signal, parent)
  local job = parseRecord(record)
  if signal ~= '' then
    job[F.queueSignal] = job[F.fence] .. ':' .. publishSignal(KEYS[3], KEYS[4], registry, subject, signal)
    record = formatRecord(job)
  end
  set(recordPrefix .. id, record)
  set(fixedPrefix .. id, fixed)
  local enqueuedAt = job[F.enqueuedAtMs]
  zadd(openKey, enqueuedAt, id)
  if job[F.state] == SCHEDULED then
    zadd(stateKeys[SCHEDULED], enqueuedAt, id)
    zadd(scheduledKey, job[F.dueAtMs], id)
  end
  if parent ~= '' then zadd(base .. CHILDREN .. parent, enqueuedAt, id) end
  addToLane(job, id, now)
end

local result, ids, added = {}, {}, {}
for at = FIRST_JOB, #ARGV, JOB_VALUES do ids[#ids + 1] = ARGV[at] end
local existing = readAll(recordPrefix, ids)
for n, id in ipairs(ids) do
  local at = FIRST_JOB + (n - 1) * JOB_VALUES
  local _, record, fixed, signal, dedupeKey, untilMs, parent = unpack(ARGV, at, at + JOB_VALUES - 1)
  if isDraining then result[n] = 0
  elseif existing[n] or added[id] then result[n] = id
  else
    result[n] = dedupeKey ~= '' and takeDedupeKey(dedupeKey, untilMs, id) or 1
    if result[n] == 1 then
      added[id] = true
      add(id, record, fixed, signal, parent)
    end
  end
end
flush()
wakeReaders(channel)
wakeWorkers(workerChannel, subject)
return result
