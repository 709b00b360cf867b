-- KEYS: due times of each shard. ARGV: limit for each shard. Returns streams and due times.
local found = {}
for _, key in ipairs(KEYS) do
  local rows = redis.call('ZRANGEBYSCORE', key, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
  for _, cell in ipairs(rows) do table.insert(found, cell) end
end
return found
