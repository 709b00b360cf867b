-- KEYS: shards. ARGV: shard, owner, lease duration, token that the new token must exceed.
-- Returns {1, token}, or {0, remaining milliseconds} while another owner holds the lease.
-- @include "../../connection/scripts/now"
local shard, owner, ttlMs, above = unpack(ARGV)
local row = redis.call('HMGET', KEYS[1], shard .. ':token', shard .. ':until')
local remainingMs = tonumber(row[2] or '0') - now
if remainingMs > 0 then return {0, remainingMs} end
local token = math.max(tonumber(row[1] or '0'), tonumber(above)) + 1
redis.call('HSET', KEYS[1], shard .. ':token', string.format('%.0f', token),
  shard .. ':owner', owner, shard .. ':until', string.format('%.0f', now + tonumber(ttlMs)))
return {1, token}
