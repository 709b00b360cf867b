-- KEYS: key. Returns its value and its time to live.
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
