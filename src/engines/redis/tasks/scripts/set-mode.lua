-- Sets or clears the mode of a type. KEYS: base, never. ARGV: mode or '', channel of the workers, queue subject.
local mode, workerChannel, queueSubject = unpack(ARGV)
if mode == '' then redis.call('HDEL', KEYS[1], 'mode')
else redis.call('HSET', KEYS[1], 'mode', mode) end
redis.call('PUBLISH', workerChannel, 's ' .. queueSubject)
return 1
