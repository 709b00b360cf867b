-- KEYS: base, never. ARGV: ids. Removes the jobs that have ended and returns their number.
-- @include "include/record"
-- @include "include/batch"
local count = 0
for _, id in ipairs(ARGV) do
  local job = readJob(id)
  if job and isEnded(job[F.state]) then
    redis.call('UNLINK', recordPrefix .. id, fixedPrefix .. id, hashPrefix .. id)
    zrem(stateKeys[job[F.state]], id)
    zrem(endedKey, id)
    local parent = string.match(job[F.rest], '^[^\n]+')
    if parent then zrem(base .. CHILDREN .. parent, id) end
    count = count + 1
  end
end
flush()
return count
