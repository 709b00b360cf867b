-- A page of a sorted set within bounds, after a position (score and id) that may no longer exist.
-- KEYS: sorted set. ARGV: 'ascending' or 'descending', limit, from or '', to or '', score or '', id or ''.
-- Returns ids and scores. One row more than the limit means that there is a next page.
local key = KEYS[1]
local direction, limit, from, to, positionScore, positionId = unpack(ARGV)
local isAscending = direction == 'ascending'
limit = tonumber(limit)
local low = 0
if from ~= '' then low = redis.call('ZCOUNT', key, '-inf', '(' .. from) end
local high = redis.call('ZCARD', key) - 1
if to ~= '' then high = redis.call('ZCOUNT', key, '-inf', to) - 1 end
-- Redis sorts byte by byte, but Lua compares strings by the locale of the server.
local function isLess(a, b)
  for at = 1, math.min(#a, #b) do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
  end
  return #a < #b
end
if positionId ~= '' then
  local score = tonumber(positionScore)
  local function isBefore(rank)
    local row = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
    local rowScore = tonumber(row[2])
    if rowScore ~= score then return rowScore < score end
    if row[1] == positionId then return isAscending end
    return isLess(row[1], positionId)
  end
  local first, last = 0, redis.call('ZCARD', key)
  while first < last do
    local middle = math.floor((first + last) / 2)
    if isBefore(middle) then first = middle + 1 else last = middle end
  end
  if isAscending then low = math.max(low, first) else high = math.min(high, first - 1) end
end
if low > high then return {} end
if isAscending then
  return redis.call('ZRANGE', key, low, math.min(high, low + limit), 'WITHSCORES')
end
local size = redis.call('ZCARD', key)
local first = size - 1 - high
return redis.call('ZRANGE', key, first, math.min(size - 1 - low, first + limit), 'REV', 'WITHSCORES')
