-- KEYS: leases, state, marks, waiting, letters, pending letters.
-- ARGV: shard, token, stream, position (16 hexadecimal digits), position, event id, time in milliseconds.
-- Returns 'duplicate' without a change if the event does not wait.
-- @include "include/fenced"
-- @include "include/waiting"
local stream, position, number, eventId, atMs = unpack(ARGV, 3)
if removeWaiting(KEYS[4], stream, position) == 0 then return 'duplicate' end
redis.call('ZADD', KEYS[3], number, number)
local letter = redis.call('HMGET', KEYS[5], eventId .. ':status', eventId .. ':id')
if letter[1] == 'pending' then
  redis.call('HSET', KEYS[5], eventId .. ':status', 'replayed', eventId .. ':replayedAtMs', atMs)
  redis.call('HDEL', KEYS[5], eventId .. ':replayRequestedAtMs')
  redis.call('ZREM', KEYS[6], letter[2] .. ' ' .. eventId)
end
return 'settled'
