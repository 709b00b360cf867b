-- A lease is a member `<stream key> <padded id>` of a sorted set. The score is the time when the lease expires; 0 means
-- that the message may be delivered. Padded ids sort alphabetically in the order of the stream.
local function padded(id)
  local ms, seq = string.match(id, '^(%d+)%-(%d+)$')
  return string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #seq) .. seq
end
local function parseMember(member)
  local key, ms, seq = string.match(member, '^(.*) 0*(%d+)%-0*(%d+)$')
  return key, ms .. '-' .. seq
end
