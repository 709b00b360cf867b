-- KEYS: base, never, queue stream. ARGV: now, native group of the workers, channel of the workers, queue subject.
-- Removes expired dedupe keys and unblocks jobs whose concurrency key is free. Moves the consumer group to the oldest
-- queued job, which acks the signals of all claimed jobs.
-- @include "include/lanes"
local EXPIRED_MAX, KEYS_MAX, TURNS_MAX = 1000, 1000, 10000
-- The search for the oldest queue signal reads at most this many open jobs and this many queued jobs.
local OPEN_MAX, QUEUED_MAX, PAGE = 10000, 100, 100
local now, native, workerChannel, queueSubject = unpack(ARGV)
local stream = KEYS[3]
while true do
  local expired = redis.call('ZRANGEBYSCORE', base .. DEDUPE_EXPIRY, '-inf', now, 'LIMIT', 0, EXPIRED_MAX)
  if #expired == 0 then break end
  redis.call('HDEL', base .. DEDUPE, unpack(expired))
  redis.call('ZREM', base .. DEDUPE_EXPIRY, unpack(expired))
end
for _, key in ipairs(redis.call('SRANDMEMBER', base .. BLOCKING_KEYS, KEYS_MAX)) do
  if redis.call('HEXISTS', base .. KEY_COUNTS, key) == 0 then unblock(key) end
end
if redis.call('HLEN', base .. TURNS) > TURNS_MAX then redis.call('DEL', base .. TURNS) end

local lowestMs, lowestSeq
local function include(signalId)
  local ms, seq = string.match(signalId, '^(%d+)%-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if not lowestMs or ms < lowestMs or (ms == lowestMs and seq < lowestSeq) then lowestMs, lowestSeq = ms, seq end
end
local function findLowest()
  local offset, queued = 0, 0
  while queued < QUEUED_MAX and offset < OPEN_MAX do
    local ids = redis.call('ZRANGE', openKey, offset, offset + PAGE - 1)
    for _, id in ipairs(ids) do
      local job = readJob(id)
      local signalId = job and job[F.state] == QUEUED and string.match(job[F.queueSignal], ':(.*)$')
      if signalId then include(signalId) queued = queued + 1 end
    end
    if #ids < PAGE then return end
    offset = offset + PAGE
  end
end
if redis.call('EXISTS', stream) == 1 then
  findLowest()
  local position = '$'
  if lowestMs then
    if lowestSeq > 0 then position = text(lowestMs) .. '-' .. text(lowestSeq - 1)
    else position = text(lowestMs - 1) .. '-18446744073709551615' end
  end
  if redis.pcall('XGROUP', 'SETID', stream, native, position).err then
    redis.pcall('XGROUP', 'CREATE', stream, native, position)
  end
end
wakeWorkers(workerChannel, queueSubject)
return 1
