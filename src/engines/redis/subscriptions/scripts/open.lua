-- KEYS: state. ARGV: number of shards, filter as JSON or ''. Returns the fields of the state.
local shards, filter = unpack(ARGV)
if redis.call('HEXISTS', KEYS[1], 'shards') == 0 then
  -- The first number of changes is the time in microseconds, so that no number of an earlier state is reused.
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'shards', shards, 'paused', '0',
    'changes', string.format('%.0f', time[1] * 1000000 + time[2]))
end
if filter == '' then redis.call('HDEL', KEYS[1], 'filter')
else redis.call('HSET', KEYS[1], 'filter', filter) end
return redis.call('HGETALL', KEYS[1])
