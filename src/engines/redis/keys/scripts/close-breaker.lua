-- ARGV: destination, holder of the probe. Returns 1 if closed.
-- @include "breaker-row"
if holder == '' or holder ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], destination)
