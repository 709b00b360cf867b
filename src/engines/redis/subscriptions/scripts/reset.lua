-- KEYS: leases, state, letters, pending letters, then marks, blocked and waiting of each shard.
-- ARGV: position, operator, time in milliseconds. Returns the number of changes and the lowest position.
-- @include "include/checkpoint"
local to, by, atMs = unpack(ARGV)
local before = lowestPosition()

local function resetLease(shard)
  local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':fence')
  local token = string.format('%.0f', math.max(tonumber(row[1] or '0'), tonumber(row[2] or '0')) + 1)
  redis.call('HSET', KEYS[1], shard .. ':token', token, shard .. ':fence', token, shard .. ':until', '0')
end

-- Waiting events above the position are read again. A stream without waiting events is no longer blocked.
local function resetWaiting(blocked, waiting)
  local remains = {}
  for _, member in ipairs(redis.call('ZRANGE', waiting, 0, -1)) do
    local stream, position = string.match(member, '^(.-)%z(%x+)%z')
    if tonumber(position, 16) > tonumber(to) then redis.call('ZREM', waiting, member)
    else remains[stream] = true end
  end
  for _, stream in ipairs(redis.call('ZRANGE', blocked, 0, -1)) do
    if not remains[stream] then redis.call('ZREM', blocked, stream) end
  end
end

for shard = 0, (#KEYS - 4) / 3 - 1 do
  local marks, blocked, waiting = KEYS[5 + shard * 3], KEYS[6 + shard * 3], KEYS[7 + shard * 3]
  resetLease(shard)
  redis.call('HSET', KEYS[2], shard .. ':position', to)
  redis.call('DEL', marks)
  resetWaiting(blocked, waiting)
end

for _, member in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  local eventId = string.match(member, ' (.+)$')
  if tonumber(redis.call('HGET', KEYS[3], eventId .. ':position')) > tonumber(to) then
    redis.call('HSET', KEYS[3], eventId .. ':status', 'discarded', eventId .. ':discardedAtMs', atMs,
      eventId .. ':discardedBy', by, eventId .. ':discardReason', 'the subscription was reset')
    redis.call('HDEL', KEYS[3], eventId .. ':replayRequestedAtMs')
    redis.call('ZREM', KEYS[4], member)
  end
end
countChange(before)
return checkpoint()
