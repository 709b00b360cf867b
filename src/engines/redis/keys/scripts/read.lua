-- KEYS: key. Returns value and time to live of the key.
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
