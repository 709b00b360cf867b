-- Claims without changes. A separate script, because it prepares less than `exchange`, and a new job waits for it.
-- KEYS: base, never. ARGV: now, channel of the workers, queue subject, hash of workers or '', worker, until when it is
-- alive, rule of the claim. Returns the same as `exchange`.
-- @include "include/claim"
local nowText, workerChannel, queueSubject, workers, worker, aliveUntil, rule = unpack(ARGV)
redis.call('HSET', workers == '' and base .. WORKERS or workers, worker, aliveUntil)
local claimed = claim(tonumber(nowText), nowText, worker, parseRule(rule))
if claimed[4] > 0 then redis.call('HINCRBY', base .. WORKER_COUNTS, worker, claimed[4]) end
wakeWorkers(workerChannel, queueSubject)
return {{}, claimed[1], claimed[2], claimed[3]}
