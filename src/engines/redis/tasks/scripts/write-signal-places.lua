-- KEYS: base, never. ARGV: job, stream (1 to 3), place and id in the stream of each signal.
-- @include "include/signal-places"
for at = 1, #ARGV, 4 do
  local id, stream, place, signalId = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local job = readJob(id)
  if job and readPlace(id, job, stream, place) then writePlace(id, job, stream, place, signalId) end
end
return 1
