-- KEYS: tenants, losses. ARGV: tenant whose entries are missing.
-- Counts each loss once: this script removes the tenant, and restoring its entries adds the tenant again.
if redis.call('SREM', KEYS[1], ARGV[1]) == 1 then redis.call('INCR', KEYS[2]) end
return 1
