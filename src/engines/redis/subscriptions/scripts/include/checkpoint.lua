-- KEYS[2]: state. The lowest position of all shards is the position of the subscription; a shard without a position is
-- at 0. `changes` counts its changes, so that an older value never replaces a newer one at `checkpoint:esdb:…`.
local function lowestPosition()
  local lowest
  for shard = 0, tonumber(redis.call('HGET', KEYS[2], 'shards') or '0') - 1 do
    local position = tonumber(redis.call('HGET', KEYS[2], shard .. ':position') or '0')
    if not lowest or position < lowest then lowest = position end
  end
  return string.format('%.0f', lowest or 0)
end

local function countChange(before)
  if lowestPosition() ~= before then redis.call('HINCRBY', KEYS[2], 'changes', 1) end
end

-- Never moves the checkpoint back.
local function moveCheckpoint(shard, position)
  local stored = redis.call('HGET', KEYS[2], shard .. ':position')
  if stored and tonumber(stored) >= tonumber(position) then return end
  local before = lowestPosition()
  redis.call('HSET', KEYS[2], shard .. ':position', position)
  countChange(before)
end

local function checkpoint()
  return {redis.call('HGET', KEYS[2], 'changes'), lowestPosition()}
end
