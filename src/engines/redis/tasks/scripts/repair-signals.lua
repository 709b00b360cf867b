-- KEYS: the same as for `exchange`. ARGV: channel of the bus, registry or '', the three subjects, then job, stream
-- (1 to 3), place and data of each signal. Returns how many signals were missing and are stored now.
-- @include "include/signals"
-- @include "include/signal-places"
local channel, registry = ARGV[1], ARGV[2]
local count = 0
for at = 6, #ARGV, 4 do
  local id, stream, place, data = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3]
  local job = readJob(id)
  if job then
    local streamKey, markKey, subject = KEYS[1 + stream * 2], KEYS[2 + stream * 2], ARGV[2 + stream]
    local stored = readPlace(id, job, stream, place)
    if stored ~= 'later' and (stored == '' or #redis.call('XRANGE', streamKey, stored, stored, 'COUNT', 1) == 0) then
      writePlace(id, job, stream, place, publishSignal(streamKey, markKey, registry, subject, data))
      count = count + 1
    end
  end
end
wakeReaders(channel)
return count
