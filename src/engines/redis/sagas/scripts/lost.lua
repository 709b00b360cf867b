-- KEYS: tenants, losses. ARGV: tenant whose entries are missing.
-- Counts a loss once: the tenant is removed here and added again when its entries are restored.
if redis.call('SREM', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[2]) end
return 1
