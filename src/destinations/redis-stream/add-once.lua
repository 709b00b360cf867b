-- KEYS: stream, dedupe key. ARGV: how long to remember the dedupe key, maximum length or '', fields of the entry.
-- Returns the id of the entry, or of the earlier entry with the same dedupe key.
local dedupeMs, lengthMax = ARGV[1], ARGV[2]
local earlier = redis.call('GET', KEYS[2])
if earlier then return earlier end
local fields = {unpack(ARGV, 3)}
local id
if lengthMax == '' then
  id = redis.call('XADD', KEYS[1], '*', unpack(fields))
else
  id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', lengthMax, '*', unpack(fields))
end
redis.call('SET', KEYS[2], id, 'PX', dedupeMs)
return id
