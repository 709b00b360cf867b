-- KEYS: due times, revisions of the due times, tenants. ARGV: stream, revision, due time or '', tenant.
-- Stores the revision together with the due time, so that a delayed call does not remove a later due time.
local stream, revision, dueAtMs, tenant = unpack(ARGV)
redis.call('SADD', KEYS[3], tenant)
local stored = redis.call('HGET', KEYS[2], stream)
if stored and tonumber(stored) > tonumber(revision) then return 0 end
if dueAtMs == '' then
  redis.call('ZREM', KEYS[1], stream)
  redis.call('HDEL', KEYS[2], stream)
else
  redis.call('ZADD', KEYS[1], dueAtMs, stream)
  redis.call('HSET', KEYS[2], stream, revision)
end
return 1
