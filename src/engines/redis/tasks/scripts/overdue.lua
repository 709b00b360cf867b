-- KEYS: base, never. ARGV: now, limit. Returns the overdue jobs, and the workers that have running jobs.
-- @include "include/keys"
return {
  redis.call('ZRANGEBYSCORE', runningKey, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2]),
  redis.call('HKEYS', base .. WORKER_COUNTS),
}
