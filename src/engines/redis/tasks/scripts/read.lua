-- KEYS: base, never. ARGV: ids. Returns id, record, fixed part and hash of each job, or false.
-- @include "include/keys"
-- @include "include/batch"
local result, fixed = readAll(recordPrefix, ARGV), readAll(fixedPrefix, ARGV)
for at, record in ipairs(result) do
  if record then
    local job = {ARGV[at], record, fixed[at] or ''}
    for _, cell in ipairs(redis.call('HGETALL', hashPrefix .. ARGV[at])) do job[#job + 1] = cell end
    result[at] = job
  end
end
return result
