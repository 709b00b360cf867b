-- KEYS: list, generation, lists. ARGV: hash of the filters.
-- Returns whether the list is cached (1 or 0), its ids, and the generation.
-- @include "../../connection/scripts/now"
local generation = redis.call('GET', KEYS[2]) or '0'
local ids = redis.call('LRANGE', KEYS[1], 0, -1)
if #ids > 0 then return {1, ids, generation} end
local expiry = redis.call('HGET', KEYS[3], ARGV[1])
-- Redis has no empty lists, so an empty cached list is only its expiry, prefixed with `e`.
if expiry and string.sub(expiry, 1, 1) == 'e' and tonumber(string.sub(expiry, 2)) > now then
  return {1, {}, generation}
end
return {0, {}, generation}
