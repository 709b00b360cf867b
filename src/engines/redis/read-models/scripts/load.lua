-- KEYS: fences, then one key for each document. ARGV: document kind ('json' or 'hash'), maximum of bytes or '', ids.
-- Returns the fence and the JSON string (or the hash fields) of each document, until they have the maximum of bytes.
local documentKind, bytesMax = ARGV[1], tonumber(ARGV[2])
local found, bytes = {}, 0
for n = 1, #ARGV - 2 do
  if bytesMax and bytes >= bytesMax then break end
  local fence = redis.call('HGET', KEYS[1], ARGV[n + 2])
  local text = false
  if fence and documentKind == 'json' then text = redis.call('GET', KEYS[n + 1]) end
  if fence and documentKind == 'hash' then text = redis.call('HGETALL', KEYS[n + 1]) end
  found[n] = {fence, text}
  if documentKind == 'json' and text then bytes = bytes + #text end
  if documentKind == 'hash' and text then
    for _, part in ipairs(text) do bytes = bytes + #part end
  end
end
return found
