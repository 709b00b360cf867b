-- Reads and writes many keys with few commands. More arguments than this per command overflow the stack of Lua.
local BATCH_MAX = 1000
local function text(number) return string.format('%.0f', number) end
local function readAll(prefix, ids)
  local keys, values = {}, {}
  for at = 1, #ids do keys[at] = prefix .. ids[at] end
  for from = 1, #ids, BATCH_MAX do
    local found = redis.call('MGET', unpack(keys, from, math.min(from + BATCH_MAX - 1, #ids)))
    if #ids <= BATCH_MAX then return found, keys end
    for _, value in ipairs(found) do values[#values + 1] = value end
  end
  return values, keys
end
local sets, removals, additions = {}, {}, {}
local function set(key, value)
  sets[#sets + 1] = key
  sets[#sets + 1] = value
end
local function zadd(key, score, member)
  local rows = additions[key]
  if not rows then rows = {} additions[key] = rows end
  rows[#rows + 1] = score
  rows[#rows + 1] = member
end
local function zrem(key, member)
  local members = removals[key]
  if not members then members = {} removals[key] = members end
  members[#members + 1] = member
end
local function flush()
  for at = 1, #sets, BATCH_MAX do
    redis.call('MSET', unpack(sets, at, math.min(at + BATCH_MAX - 1, #sets)))
  end
  for key, members in pairs(removals) do
    for at = 1, #members, BATCH_MAX do
      redis.call('ZREM', key, unpack(members, at, math.min(at + BATCH_MAX - 1, #members)))
    end
  end
  for key, rows in pairs(additions) do
    for at = 1, #rows, BATCH_MAX do
      redis.call('ZADD', key, unpack(rows, at, math.min(at + BATCH_MAX - 1, #rows)))
    end
  end
  sets, removals, additions = {}, {}, {}
end
