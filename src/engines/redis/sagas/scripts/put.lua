-- KEYS: entries, entries by status. ARGV: stream, revision, status, entry.
-- Returns the stored entry, which stays unchanged if its revision is at least the given one.
local stream, revision, status, entry = unpack(ARGV)
local text = redis.call('HGET', KEYS[1], stream)
local isRead, stored = pcall(cjson.decode, text or '')
-- A damaged entry is replaced.
if isRead and type(stored) == 'table' then
  if stored.revision >= tonumber(revision) then
    redis.call('ZADD', KEYS[2], 0, stored.status .. ' ' .. stream)
    return text
  end
  if stored.status ~= status then redis.call('ZREM', KEYS[2], stored.status .. ' ' .. stream) end
end
redis.call('HSET', KEYS[1], stream, entry)
redis.call('ZADD', KEYS[2], 0, status .. ' ' .. stream)
return entry
