-- KEYS: leases, state, marks, blocked, waiting, letters, ids of the letters, letters by time, pending letters.
-- ARGV: shard, token, id of the letter, '1' if it is new, its time in milliseconds, event id, stream, position
-- (16 hexadecimal digits), position, content of the waiting event or '' if the stream is not parked, fields and values.
-- Returns 'changed', without a change, if another call has added the letter.
-- @include "include/fenced"
-- @include "include/waiting"
local id, isNew, atMs, eventId, stream, position, number, content = unpack(ARGV, 3, 10)
if (redis.call('HEXISTS', KEYS[6], eventId .. ':id') == 0) ~= (isNew == '1') then return 'changed' end
for at = 11, #ARGV, 2 do
  redis.call('HSET', KEYS[6], eventId .. ':' .. ARGV[at], ARGV[at + 1])
end
redis.call('HDEL', KEYS[6], eventId .. ':replayedAtMs', eventId .. ':replayRequestedAtMs')
redis.call('HSET', KEYS[7], id, eventId)
redis.call('ZADD', KEYS[8], atMs, id .. ' ' .. eventId)
redis.call('ZADD', KEYS[9], atMs, id .. ' ' .. eventId)
redis.call('ZADD', KEYS[3], number, number)
removeWaiting(KEYS[5], stream, position)
if content ~= '' then
  redis.call('ZADD', KEYS[4], '+inf', stream)
  addWaiting(KEYS[5], stream, position, content)
end
return 'added'
