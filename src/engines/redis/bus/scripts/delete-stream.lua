-- KEYS: stream, mark, then leases and fences of each group.
-- @include "include/forget-leases"
for at = 3, #KEYS, 2 do forgetLeases(KEYS[at], KEYS[at + 1], KEYS[1]) end
redis.call('DEL', KEYS[2])
return redis.call('DEL', KEYS[1])
