-- KEYS: stream. ARGV: native groups.
-- Returns length, first id, last id and bytes, then lag and pending messages of each group; false: no stream.
-- @include "include/stream-info"
local stream = KEYS[1]
if redis.call('TYPE', stream).ok ~= 'stream' then return false end
local length = redis.call('XLEN', stream)
local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
-- Redis reports no lag after entries were deleted from the middle of the stream.
local function countAfter(id)
  local count, from = 0, '(' .. id
  while true do
    local entries = redis.call('XRANGE', stream, from, '+', 'COUNT', 1000)
    count = count + #entries
    if #entries < 1000 then return count end
    from = '(' .. entries[#entries][1]
  end
end
local groups = groupsOf(stream)
local result = {length, first and first[1] or '', last and last[1] or '', bytesOf(stream)}
for _, native in ipairs(ARGV) do
  local fields = groups[native]
  result[#result + 1] = fields and (fields.lag or countAfter(fields['last-delivered-id'])) or length
  result[#result + 1] = fields and fields.pending or 0
end
return result
