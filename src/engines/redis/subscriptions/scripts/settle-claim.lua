-- KEYS: processed events. ARGV: event id, token, 'confirm' or 'release'. Returns 0 if another process took over.
local eventId, token, how = unpack(ARGV)
local row = redis.call('HMGET', KEYS[1], eventId .. ':token', eventId .. ':done')
if row[1] ~= token then return 0 end
if how == 'confirm' then redis.call('HSET', KEYS[1], eventId .. ':done', '1') return 1 end
if row[2] == '1' then return 0 end
redis.call('HSET', KEYS[1], eventId .. ':until', '0')
return 1
