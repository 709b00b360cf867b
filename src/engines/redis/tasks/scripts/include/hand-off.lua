-- @include "claim"
-- An offer of an idle worker is a key with these lines: number, channel, worker, lease duration, an empty line, then
-- type, deadline, key limit and rate of each type. A hand-off replaces it with a receipt: `!` and number, type, base,
-- id, fence.
--
-- Processes that are asked at random; if most of them are idle, one of these accepts.
local CANDIDATES_MAX = 8
-- Longer than the worker takes to look for the receipt.
local RECEIPT_MS = 3600000
-- Claims the next job for an idle worker and sends it to its process. Returns whether a worker got a job. All enqueued
-- jobs must be flushed before.
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
