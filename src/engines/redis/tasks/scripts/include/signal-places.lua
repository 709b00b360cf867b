-- @include "record"
-- Where a signal was stored: queue and terminal signals (streams 1 and 2) in the record as `<fence>:<id>`, progress
-- signals (stream 3) in the hash of the job.
local PROGRESS = 3
local SIGNAL_FIELDS = {F.queueSignal, F.terminalSignal}
-- Returns the id of the signal, '' if it was not stored, or false if a signal of a higher fence was stored.
local function readPlace(id, job, stream, place)
  if stream == PROGRESS then return redis.call('HGET', hashPrefix .. id, '~' .. place) or '' end
  local fence, signalId = string.match(job[SIGNAL_FIELDS[stream]], '^(%d+):(.*)$')
  if not fence then return '' end
  if fence == place then return signalId end
  return tonumber(fence) < tonumber(place) and ''
end
local function writePlace(id, job, stream, place, signalId)
  if stream == PROGRESS then redis.call('HSET', hashPrefix .. id, '~' .. place, signalId) return end
  job[SIGNAL_FIELDS[stream]] = place .. ':' .. signalId
  redis.call('SET', recordPrefix .. id, formatRecord(job))
end
