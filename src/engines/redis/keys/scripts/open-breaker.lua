-- ARGV: destination, how long it stays open, number of openings.
-- @include "breaker-row"
local later = math.max(untilMs, now + tonumber(ARGV[2]))
local most = math.max(openings, tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], destination, text(later) .. ' ' .. text(most) .. ' 0 ')
return 1
