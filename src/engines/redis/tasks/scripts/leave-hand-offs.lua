-- Removes a process from the receivers of hand-offs. KEYS: offer. ARGV: process, bases of types.
redis.call('DEL', KEYS[1])
for at = 2, #ARGV do redis.call('ZREM', ARGV[at] .. ':h', ARGV[1]) end
return 1
