-- KEYS: letters, blocked, waiting. ARGV: event id, operator, time in milliseconds, stream, position (16 hexadecimal
-- digits), content of the waiting event. Returns 0, without a change, if the letter is not pending.
-- @include "include/waiting"
local eventId, by, atMs, stream, position, content = unpack(ARGV)
if redis.call('HGET', KEYS[1], eventId .. ':status') ~= 'pending' then return 0 end
redis.call('HSET', KEYS[1], eventId .. ':replayedBy', by, eventId .. ':replayRequestedAtMs', atMs)
redis.call('ZADD', KEYS[2], 0, stream)
removeWaiting(KEYS[3], stream, position)
addWaiting(KEYS[3], stream, position, content)
return 1
