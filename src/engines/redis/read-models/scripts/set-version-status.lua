-- KEYS: versions of a family. ARGV: version, new status, time in milliseconds, allowed statuses before.
local version, to, nowMs = unpack(ARGV)
local status = redis.call('HGET', KEYS[1], version .. ':status')
for at = 4, #ARGV do
  if status == ARGV[at] then
    redis.call('HSET', KEYS[1], version .. ':status', to, version .. ':changedAtMs', nowMs)
    return 1
  end
end
return 0
