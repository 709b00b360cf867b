-- KEYS: shards. ARGV: shard, owner, lease duration, token that the new token must exceed, '1' if the storage of the
-- subscription is in this Redis: its fence then changes together with the lease.
-- Returns {1, token}, or {0, remaining milliseconds} while another owner holds the lease.
-- @include "../../connection/scripts/now"
local shard, owner, ttlMs, above, isFence = unpack(ARGV)
local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':until', shard .. ':fence')
local remainingMs = tonumber(row[2] or '0') - now
if remainingMs > 0 then return {0, remainingMs} end
local token = math.max(tonumber(row[1] or '0'), tonumber(row[3] or '0'), tonumber(above)) + 1
redis.call('HSET', KEYS[1], shard .. ':token', string.format('%.0f', token),
  shard .. ':owner', owner, shard .. ':until', string.format('%.0f', now + tonumber(ttlMs)))
if isFence == '1' then redis.call('HSET', KEYS[1], shard .. ':fence', string.format('%.0f', token)) end
return {1, token}
