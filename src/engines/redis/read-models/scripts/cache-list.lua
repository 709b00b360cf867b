-- KEYS: list, generation, lists. ARGV: hash of the filters, generation, time to live in ms, ids.
-- Returns 0 without caching if a document was written since the given generation.
-- @include "../../connection/scripts/now"
local IDS_MAX = 2000
local hash, generation, ttlMs = ARGV[1], ARGV[2], ARGV[3]
if (redis.call('GET', KEYS[2]) or '0') ~= generation then return 0 end
redis.call('DEL', KEYS[1])
for from = 4, #ARGV, IDS_MAX do
  redis.call('RPUSH', KEYS[1], unpack(ARGV, from, math.min(from + IDS_MAX - 1, #ARGV)))
end
local expiry = string.format('%.0f', now + tonumber(ttlMs))
if #ARGV == 3 then expiry = 'e' .. expiry else redis.call('PEXPIRE', KEYS[1], ttlMs) end
redis.call('HSET', KEYS[3], hash, expiry)
-- Every 256th list removes the expired entries.
if redis.call('HLEN', KEYS[3]) % 256 == 0 then
  local all = redis.call('HGETALL', KEYS[3])
  for at = 1, #all, 2 do
    if tonumber((string.gsub(all[at + 1], 'e', ''))) <= now then
      redis.call('HDEL', KEYS[3], all[at])
    end
  end
end
return 1
