-- KEYS: groups, generations. ARGV: group, filters, record of a new group, lease duration, most pending messages.
-- Returns `<generation> <record>`. A group with other filters is not changed, and the caller reports the conflict.
local group, filters, newRecord, leaseMs, pendingMax = unpack(ARGV)
local stored = redis.call('HGET', KEYS[1], group)
if not stored then
  local generation = redis.call('HINCRBY', KEYS[2], group, 1)
  stored = generation .. ' ' .. newRecord
  redis.call('HSET', KEYS[1], group, stored)
  return stored
end
local generation, text = string.match(stored, '^(%d+) (.*)$')
local isRead, record = pcall(cjson.decode, text or '')
if not isRead or type(record) ~= 'table' then
  -- The record is damaged. Its native groups stay, and with them the leases and the acks.
  generation = generation or redis.call('HGET', KEYS[2], group) or redis.call('HINCRBY', KEYS[2], group, 1)
  stored = generation .. ' ' .. newRecord
  redis.call('HSET', KEYS[1], group, stored)
  return stored
end
if record.filters ~= filters then return stored end
leaseMs, pendingMax = tonumber(leaseMs), tonumber(pendingMax)
if record.leaseMs ~= leaseMs or record.maxAckPending ~= pendingMax then
  record.leaseMs, record.maxAckPending = leaseMs, pendingMax
  stored = generation .. ' ' .. cjson.encode(record)
  redis.call('HSET', KEYS[1], group, stored)
end
return stored
