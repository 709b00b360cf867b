-- KEYS: idempotency key. ARGV: stream, command, time until the key is forgotten. Returns stream and command of its first use.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'stream', ARGV[1], 'command', ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('HMGET', KEYS[1], 'stream', 'command')
