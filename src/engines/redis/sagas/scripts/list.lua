-- KEYS: entries, entries by status. ARGV: limit, lowest stream (with `[` or `(`), highest stream, statuses.
-- Returns whether both keys exist (1 or 0), and up to `limit` entries of each status. The caller sorts them,
-- because Lua compares strings by the locale of the server.
local limit, lowest, highest = ARGV[1], ARGV[2], ARGV[3]
local bound, lowestStream = string.sub(lowest, 1, 1), string.sub(lowest, 2)
local found = {}
for at = 4, #ARGV do
  local status = ARGV[at]
  local from = bound .. status .. ' ' .. lowestStream
  local below = '(' .. status .. ' ' .. highest
  local members = redis.call('ZRANGEBYLEX', KEYS[2], from, below, 'LIMIT', 0, limit)
  for _, member in ipairs(members) do
    local text = redis.call('HGET', KEYS[1], string.sub(member, #status + 2))
    if text then table.insert(found, text) end
  end
end
return {redis.call('EXISTS', KEYS[1], KEYS[2]) == 2 and 1 or 0, found}
