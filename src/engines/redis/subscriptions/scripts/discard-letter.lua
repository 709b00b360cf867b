-- KEYS: letters, pending letters, blocked, waiting. ARGV: event id, operator, time in milliseconds, reason, stream,
-- position (16 hexadecimal digits). Returns 0, without a change, if the letter is not pending.
-- @include "include/waiting"
local eventId, by, atMs, reason, stream, position = unpack(ARGV)
local letter = redis.call('HMGET', KEYS[1], eventId .. ':status', eventId .. ':id')
if letter[1] ~= 'pending' then return 0 end
redis.call('HSET', KEYS[1], eventId .. ':status', 'discarded', eventId .. ':discardedAtMs', atMs,
  eventId .. ':discardedBy', by, eventId .. ':discardReason', reason)
redis.call('HDEL', KEYS[1], eventId .. ':replayRequestedAtMs')
redis.call('ZREM', KEYS[2], letter[2] .. ' ' .. eventId)
redis.call('ZADD', KEYS[3], 'XX', 0, stream)
removeWaiting(KEYS[4], stream, position)
return 1
