-- KEYS: base, never. ARGV: job, stream (1 to 3) and place of each signal. Returns the id in the stream of each, or ''.
-- @include "include/signal-places"
local answer = {}
for at = 1, #ARGV, 3 do
  local id, stream, place = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local job = readJob(id)
  local signalId = job and readPlace(id, job, stream, place) or ''
  answer[#answer + 1] = signalId == 'later' and '' or signalId
end
return answer
