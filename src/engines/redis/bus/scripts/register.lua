-- KEYS: registry. ARGV: subjects.
-- @include "include/registry"
for _, subject in ipairs(ARGV) do register(KEYS[1], subject) end
return redis.call('ZSCORE', KEYS[1], '')
