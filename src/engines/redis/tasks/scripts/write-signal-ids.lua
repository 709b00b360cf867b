-- KEYS: base, never. ARGV: for each signal its job, stream (1 to 3), key and stream id.
-- @include "include/signal-ids"
for at = 1, #ARGV, 4 do
  local id, stream, signalKey, signalId = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local job = readJob(id)
  if job and readSignalId(id, job, stream, signalKey) then writeSignalId(id, job, stream, signalKey, signalId) end
end
return 1
