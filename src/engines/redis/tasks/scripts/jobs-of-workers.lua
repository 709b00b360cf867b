-- KEYS: base, never. ARGV: limit, workers.
-- Returns the running jobs of these workers, and those whose worker cannot be read. Removes the counts of workers without running jobs.
-- @include "include/record"
local PAGE = 1000
local limit, counts, found = tonumber(ARGV[1]), {}, {}
for at = 2, #ARGV do counts[ARGV[at]] = 0 end
for offset = 0, 1e9, PAGE do
  local ids = redis.call('ZRANGE', runningKey, offset, offset + PAGE - 1)
  for _, id in ipairs(ids) do
    local job = readJob(id)
    local count = job and job[F.state] == RUNNING and counts[job[F.worker]]
    if count then counts[job[F.worker]] = count + 1 end
    if count or (job and job.isDamaged) then
      found[#found + 1] = id
      if #found == limit then return found end
    end
  end
  if #ids < PAGE then break end
end
for worker, count in pairs(counts) do
  if count == 0 then redis.call('HDEL', base .. WORKER_COUNTS, worker) end
end
return found
