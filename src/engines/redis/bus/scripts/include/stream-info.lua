local SAMPLE_MAX, ENTRY_OVERHEAD_BYTES = 20, 32
-- Estimates the size from the oldest and the newest entries, because MEMORY USAGE changes only in whole blocks.
local function bytesOf(stream)
  local length = redis.call('XLEN', stream)
  local sample = redis.call('XRANGE', stream, '-', '+', 'COUNT', SAMPLE_MAX)
  if length > SAMPLE_MAX then
    local count = math.min(SAMPLE_MAX, length - SAMPLE_MAX)
    local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', count)
    for _, entry in ipairs(newest) do sample[#sample + 1] = entry end
  end
  local bytes = 0
  for _, entry in ipairs(sample) do
    bytes = bytes + ENTRY_OVERHEAD_BYTES
    for _, text in ipairs(entry[2]) do bytes = bytes + #text end
  end
  return #sample > 0 and math.ceil(bytes * length / #sample) or 0
end
-- The consumer groups of a stream by name, each with its fields of XINFO.
local function groupsOf(stream)
  local groups = {}
  for _, row in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local fields = {}
    for at = 1, #row, 2 do fields[row[at]] = row[at + 1] end
    groups[fields.name] = fields
  end
  return groups
end
