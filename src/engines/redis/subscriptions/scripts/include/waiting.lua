-- A waiting event is a member of a ZSET without scores: stream, position (16 hexadecimal digits) and content, separated
-- by a zero byte, so that the events of a stream are sorted by position.
local function waitingAt(stream, position)
  local prefix = stream .. '\0' .. position
  return '[' .. prefix .. '\0', '(' .. prefix .. '\1'
end

local function removeWaiting(key, stream, position)
  return redis.call('ZREMRANGEBYLEX', key, waitingAt(stream, position))
end

local function isWaiting(key, stream, position)
  return redis.call('ZLEXCOUNT', key, waitingAt(stream, position)) > 0
end

local function addWaiting(key, stream, position, content)
  redis.call('ZADD', key, 0, stream .. '\0' .. position .. '\0' .. content)
end
