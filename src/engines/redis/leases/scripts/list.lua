-- KEYS: shards. Returns shard, owner and remaining milliseconds of each lease that was not released.
-- @include "../../connection/scripts/now"
local rows = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #rows, 2 do
  local shard = string.match(rows[at], '^(%d+):until$')
  if shard and rows[at + 1] ~= '0' then
    local owner = redis.call('HGET', KEYS[1], shard .. ':owner')
    table.insert(found, {tonumber(shard), owner, math.max(0, tonumber(rows[at + 1]) - now)})
  end
end
return found
