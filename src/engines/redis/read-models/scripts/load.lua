-- KEYS: fences, then one key for each document. ARGV: document kind ('json' or 'hash'), ids.
-- Returns the fence and the JSON string (or the hash fields) of each document.
local documentKind = ARGV[1]
local found = {}
for n = 1, #ARGV - 1 do
  local fence = redis.call('HGET', KEYS[1], ARGV[n + 1])
  local text = false
  if fence and documentKind == 'json' then text = redis.call('GET', KEYS[n + 1]) end
  if fence and documentKind == 'hash' then text = redis.call('HGETALL', KEYS[n + 1]) end
  found[n] = {fence, text}
end
return found
