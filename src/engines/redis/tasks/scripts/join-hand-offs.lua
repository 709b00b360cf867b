-- KEYS: prefix of offers. ARGV: process, now, until when it is listed, time to live of the list, bases of types.
local process, now, untilMs, ttlMs = unpack(ARGV, 1, 4)
for at = 5, #ARGV do
  local list = ARGV[at] .. ':h'
  redis.call('ZREMRANGEBYSCORE', list, '-inf', now)
  redis.call('ZADD', list, untilMs, process)
  redis.call('PEXPIRE', list, ttlMs)
end
return 1
