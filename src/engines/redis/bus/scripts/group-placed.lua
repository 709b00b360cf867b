-- KEYS: groups. ARGV: group, generation. Records that the group exists in every stream of its filters.
local group, generation = unpack(ARGV)
local stored = redis.call('HGET', KEYS[1], group)
if not stored or string.match(stored, '^%d+') ~= generation then return 0 end
local record = cjson.decode(string.match(stored, '^%d+ (.*)$'))
record.isPlaced = true
redis.call('HSET', KEYS[1], group, generation .. ' ' .. cjson.encode(record))
return 1
