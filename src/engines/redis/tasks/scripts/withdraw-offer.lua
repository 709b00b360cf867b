-- KEYS: offer. ARGV: number of the offer.
-- Withdraws the offer. Returns type and id of the job that was handed off, or false.
local stored = redis.call('GET', KEYS[1])
local mark, number, receipt = string.match(stored or '', '^(!?)(%d+)\n(.*)$')
if number ~= ARGV[1] then return false end
redis.call('DEL', KEYS[1])
if mark == '' then return false end
local type, base, id, fence = string.match(receipt, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(%d+)$')
-- Builds the keys as include/keys.lua does, from the base in the receipt.
local record = redis.call('GET', base .. ':j:' .. id)
if not record or string.match(record, '^R\n%d+\n(%d+)\n') ~= fence then return false end
local job = {type, id, record, redis.call('GET', base .. ':p:' .. id) or ''}
for _, cell in ipairs(redis.call('HGETALL', base .. ':f:' .. id)) do job[#job + 1] = cell end
return job
