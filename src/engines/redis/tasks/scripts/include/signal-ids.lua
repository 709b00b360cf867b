-- @include "record"
-- A job stores the ids of its signals in their streams. The record has the ids of the last queue and terminal signals
-- (streams 1 and 2) as `<fence>:<id>`. The hash of the job has the ids of its progress signals (stream 3).
local PROGRESS = 3
local SIGNAL_FIELDS = {F.queueSignal, F.terminalSignal}
-- Returns the id of the signal, '' if it was not stored, or false if a signal of a higher fence was stored.
local function readSignalId(id, job, stream, signalKey)
  if stream == PROGRESS then return redis.call('HGET', hashPrefix .. id, '~' .. signalKey) or '' end
  local fence, signalId = string.match(job[SIGNAL_FIELDS[stream]], '^(%d+):(.*)$')
  if not fence then return '' end
  if fence == signalKey then return signalId end
  return tonumber(fence) < tonumber(signalKey) and ''
end
local function writeSignalId(id, job, stream, signalKey, signalId)
  if stream == PROGRESS then redis.call('HSET', hashPrefix .. id, '~' .. signalKey, signalId) return end
  job[SIGNAL_FIELDS[stream]] = signalKey .. ':' .. signalId
  redis.call('SET', recordPrefix .. id, formatRecord(job))
end
