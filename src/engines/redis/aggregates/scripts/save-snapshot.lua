-- KEYS: snapshot. ARGV: revision, snapshot as JSON. Keeps a snapshot of a higher revision.
if tonumber(redis.call('HGET', KEYS[1], 'revision') or '-1') > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[1], 'snapshot', ARGV[2])
return 1
