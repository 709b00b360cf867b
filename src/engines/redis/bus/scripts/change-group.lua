-- KEYS: stream, leases, fences. ARGV: action ('create', 'seek' or 'drop'), native group, id after which it starts.
-- @include "include/forget-leases"
local stream, leases, fences = KEYS[1], KEYS[2], KEYS[3]
local action, native, after = unpack(ARGV)
if action ~= 'create' then
  forgetLeases(leases, fences, stream)
  redis.pcall('XGROUP', 'DESTROY', stream, native)
end
if action == 'drop' then
  if redis.call('ZCARD', leases) == 0 then redis.call('DEL', leases, fences) end
elseif redis.call('EXISTS', stream) == 1 then
  redis.pcall('XGROUP', 'CREATE', stream, native, after)
end
return 1
