-- KEYS: leases, state, marks, blocked, waiting.
-- ARGV: shard, token, then for each stream: stream, due time or 'queued', number of events, and for each event its
-- position (16 hexadecimal digits), its position and its content.
-- @include "include/fenced"
-- @include "include/waiting"
local at = 3
while at < #ARGV do
  local stream, due, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  local isQueued = due == 'queued'
  if isQueued then redis.call('ZADD', KEYS[4], 'NX', 0, stream)
  else redis.call('ZADD', KEYS[4], due, stream) end
  for _ = 1, count do
    local position, number, content = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    at = at + 3
    if not isQueued then
      -- The first event has been retried, so replace its attempts.
      removeWaiting(KEYS[5], stream, position)
      addWaiting(KEYS[5], stream, position, content)
    -- An event that was already processed as a waiting event may be read again, because the checkpoint is lower.
    elseif not redis.call('ZSCORE', KEYS[3], number) and not isWaiting(KEYS[5], stream, position) then
      addWaiting(KEYS[5], stream, position, content)
    end
  end
end
return 'parked'
