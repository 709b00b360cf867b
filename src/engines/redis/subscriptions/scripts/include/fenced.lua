-- Every script of an owner. KEYS[1]: leases, KEYS[2]: state, KEYS[3]: marks of the shard. ARGV[1]: shard, ARGV[2]: token.
-- Returns 'lost', without a change, once another owner took over.
if redis.call('HGET', KEYS[1], ARGV[1] .. ':fence') ~= ARGV[2] then return 'lost' end
