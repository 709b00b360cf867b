-- KEYS: shards. ARGV: shard, token, lease duration. Returns 1 if renewed.
-- An expired lease can be renewed until another owner acquires it; a released lease (until = 0) cannot.
-- @include "../../connection/scripts/now"
local shard, token, ttlMs = unpack(ARGV)
local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':until')
if row[1] ~= token or row[2] == '0' then return 0 end
redis.call('HSET', KEYS[1], shard .. ':until', string.format('%.0f', now + tonumber(ttlMs)))
return 1
