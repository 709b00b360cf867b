-- @include "claim"
-- An offer of an idle worker is a key with these lines: number, channel, worker, lease duration, an empty line, then one
-- line per type with its name, deadline, key limit and rate. A hand-off replaces the offer with a receipt: `!` and the
-- lines number, type, base, id, fence.
--
-- The number of randomly chosen processes whose offers are read. If most processes are idle, one of these accepts.
local CANDIDATES_MAX = 8
-- The time to live of a receipt exceeds the time after which the worker reads it.
local RECEIPT_MS = 3600000
-- Claims the next job for an idle worker and sends the job to the process of that worker. Returns whether a worker got
-- a job. The caller must flush all enqueued jobs first.
local function handOff(offerPrefix, workers, type, now, nowText)
  local processes = redis.call('ZRANDMEMBER', base .. HAND_OFFS, CANDIDATES_MAX)
  if #processes == 0 then return false end
  local keys = {}
  for at, process in ipairs(processes) do keys[at] = offerPrefix .. process end
  for at, offer in ipairs(redis.call('MGET', unpack(keys))) do
    local number, channel, worker, leaseMs =
      string.match(offer or '', '^(%d+)\n([^\n]*)\n([^\n]*)\n(%d+)\n')
    local _, typeAt = string.find(offer or '', '\n' .. type .. ' ', 1, true)
    local listening = number and typeAt and redis.pcall('PUBSUB', 'NUMSUB', channel)
    if listening and not listening.err and listening[2] > 0 then
      local deadlineMs, limits = string.match(offer, '^(%d+) ([^\n]*)', typeAt + 1)
      local rule = parseRule('1 ' .. text(now + tonumber(deadlineMs)) .. ' ' .. limits)
      local job = claim(now, nowText, worker, rule)[1][1]
      if not job then return false end
      redis.call('HSET', workers, worker, text(now + tonumber(leaseMs)))
      redis.call('HINCRBY', base .. WORKER_COUNTS, worker, 1)
      local fence = string.match(job[2], '^%a\n%d+\n(%d+)')
      local receipt = table.concat({'!' .. number, type, base, job[1], fence}, '\n')
      redis.call('SET', keys[at], receipt, 'PX', RECEIPT_MS)
      redis.call('PUBLISH', channel, cjson.encode({tonumber(number), type, job}))
      return true
    end
  end
  return false
end
