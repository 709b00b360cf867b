-- Lists a process as a receiver of hand-offs.
-- KEYS: prefix of offers. ARGV: process, current time, time until which the process is listed, time to live of the list,
-- bases of types.
local process, now, untilMs, ttlMs = unpack(ARGV, 1, 4)
for at = 5, #ARGV do
  local list = ARGV[at] .. ':h'
  redis.call('ZREMRANGEBYSCORE', list, '-inf', now)
  redis.call('ZADD', list, untilMs, process)
  redis.call('PEXPIRE', list, ttlMs)
end
return 1
