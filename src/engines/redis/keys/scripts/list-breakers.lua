-- KEYS: breakers. Returns destination, remaining milliseconds and number of openings of each open breaker.
-- @include "../../connection/scripts/now"
local rows = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #rows, 2 do
  local untilMs, openings = string.match(rows[at + 1], '^(%d+) (%d+) ')
  table.insert(found, {rows[at], math.max(0, tonumber(untilMs) - now), tonumber(openings)})
end
return found
