-- KEYS: base, never. ARGV: for each signal its job, stream (1 to 3) and key.
-- Returns the stream id of each signal, '' if unknown, or false if the job was removed or has a later signal.
-- @include "include/signal-ids"
local result = {}
for at = 1, #ARGV, 3 do
  local id, stream, signalKey = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local job = readJob(id)
  result[#result + 1] = job and readSignalId(id, job, stream, signalKey) or false
end
return result
