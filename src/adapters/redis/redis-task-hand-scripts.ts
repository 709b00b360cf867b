// Jobs that are handed to whoever waits, in Lua. A hand is a key that says who waits, and for what:
//
//   number, channel, worker, lease, nothing, then of each type its name, deadline, key limit and rate
//
// and becomes a note of what it was given: `!` and the number, type, base, id, fence.

import { redisScript } from './redis-script.ts';

/** So many of those that work on a type are asked whether they wait, by chance: where most of them do, one is found. */
const askedMax = 8;
/** Longer than whoever waited takes to look for it. */
const noteMs = 3_600_000;

/**
 * Gives the next job to one that waits: the one that came, unless another comes before it. Answers whether
 * it did. To be called when all that came is stored; needs `luaClaim`.
 */
export const luaHandOver = `local function handOver(hands, workers, type, now, nowText)
  local some = redis.call('ZRANDMEMBER', base .. ':h', ${askedMax})
  if #some == 0 then return false end
  local keys = {}
  for at, id in ipairs(some) do keys[at] = hands .. id end
  for at, hand in ipairs(redis.call('MGET', unpack(keys))) do
    local number, channel, worker, lease = string.match(hand or '', '^(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n(%d+)\\n')
    local _, from = string.find(hand or '', '\\n' .. type .. ' ', 1, true)
    local listening = number and from and redis.pcall('PUBSUB', 'NUMSUB', channel)
    if listening and not listening.err and listening[2] > 0 then
      local deadline, rest = string.match(hand, '^(%d+) ([^\\n]*)', from + 1)
      local claimed = claim(now, nowText, worker, ruleOf('1 ' .. text(now + tonumber(deadline)) .. ' ' .. rest))
      local job = claimed[1][1]
      if not job then return false end
      redis.call('HSET', workers, worker, text(now + tonumber(lease)))
      redis.call('HINCRBY', base .. ':n', worker, 1)
      local fence = string.match(job[2], '^%a\\n%d+\\n(%d+)')
      local note = table.concat({'!' .. number, type, base, job[1], fence}, '\\n')
      redis.call('SET', keys[at], note, 'PX', ${noteMs})
      redis.call('PUBLISH', channel, cjson.encode({tonumber(number), type, job}))
      return true
    end
  end
  return false
end`;

export const handScripts = {
  /** KEYS: hand; ARGV: number. Ends it. Answers the type and the job that it was given, or nothing. */
  withdraw: redisScript(`local kept = redis.call('GET', KEYS[1])
local mark, number, note = string.match(kept or '', '^(!?)(%d+)\\n(.*)$')
if number ~= ARGV[1] then return false end
redis.call('DEL', KEYS[1])
if mark == '' then return false end
local type, base, suffix, fence = string.match(note, '^([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n(%d+)$')
local record = redis.call('GET', base .. ':j:' .. suffix)
if not record or string.match(record, '^R\\n%d+\\n(%d+)\\n') ~= fence then return false end
local job = {type, suffix, record, redis.call('GET', base .. ':p:' .. suffix) or ''}
for _, cell in ipairs(redis.call('HGETALL', base .. ':f:' .. suffix)) do job[#job + 1] = cell end
return job`),

  /** KEYS: hands; ARGV: id, now, until when it is known, for how long the list is kept, bases of types. */
  join: redisScript(`for at = 5, #ARGV do
  local list = ARGV[at] .. ':h'
  redis.call('ZREMRANGEBYSCORE', list, '-inf', ARGV[2])
  redis.call('ZADD', list, ARGV[3], ARGV[1])
  redis.call('PEXPIRE', list, ARGV[4])
end
return 1`),

  /** KEYS: hand; ARGV: id, bases of types. */
  leave: redisScript(`redis.call('DEL', KEYS[1])
for at = 2, #ARGV do redis.call('ZREM', ARGV[at] .. ':h', ARGV[1]) end
return 1`),
} as const;
