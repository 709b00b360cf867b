-- KEYS: base, never. ARGV: job, stream (1 to 3) and place of each signal.
-- Returns the id in the stream of each signal, '' if unknown, or false if the job was removed or has a later signal.
-- @include "include/signal-places"
local result = {}
for at = 1, #ARGV, 3 do
  local id, stream, place = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local job = readJob(id)
  result[#result + 1] = job and readPlace(id, job, stream, place) or false
end
return result
