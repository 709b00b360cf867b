-- KEYS: the stream. ARGV: first id, last id, most entries.
-- Returns whether the range has no more entries (1 or 0), and the entries.
-- Limits of the entries per step and of the bytes per reply: a message may have a megabyte.
local STEP_MAX, BYTES_MAX = 8, 8000000
local from, to, left = ARGV[1], ARGV[2], tonumber(ARGV[3])
local found, bytes = {}, 0
while left > 0 and bytes < BYTES_MAX do
  local step = math.min(left, STEP_MAX)
  local entries = redis.call('XRANGE', KEYS[1], from, to, 'COUNT', step)
  for _, entry in ipairs(entries) do
    found[#found + 1] = entry
    for _, field in ipairs(entry[2]) do bytes = bytes + #field end
    from = '(' .. entry[1]
  end
  if #entries < step then return {1, found} end
  left = left - #entries
end
return {0, found}
