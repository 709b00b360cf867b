-- KEYS: base, never. Returns the number of open, running, waiting, scheduled, completed, failed and cancelled jobs.
-- @include "include/record"
local result = {redis.call('ZCARD', openKey), redis.call('ZCARD', runningKey)}
for _, state in ipairs({WAITING, SCHEDULED, COMPLETED, FAILED, CANCELLED}) do
  result[#result + 1] = redis.call('ZCARD', stateKeys[state])
end
return result
