-- KEYS[1] is the hash of breakers, ARGV[1] the destination. A row is `untilMs openings probeUntilMs holder`.
-- @include "../../connection/scripts/now"
local destination = ARGV[1]
local function text(number) return string.format('%.0f', number) end
local row = redis.call('HGET', KEYS[1], destination) or '0 0 0 '
local untilMs, openings, probeUntilMs, holder = string.match(row, '^(%d+) (%d+) (%d+) (.*)$')
untilMs, openings, probeUntilMs = tonumber(untilMs), tonumber(openings), tonumber(probeUntilMs)
