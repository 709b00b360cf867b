-- ARGV: destination, holder of the probe, how long the probe may take. Returns 1 if the holder may probe.
-- @include "breaker-row"
local prober, probeMs = ARGV[2], tonumber(ARGV[3])
if untilMs == 0 then return 1 end
if now < untilMs or (now < probeUntilMs and holder ~= prober) then return 0 end
redis.call('HSET', KEYS[1], destination,
  text(untilMs) .. ' ' .. text(openings) .. ' ' .. text(now + probeMs) .. ' ' .. prober)
return 1
