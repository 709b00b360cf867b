-- KEYS: stream, mark, stream, mark, …
-- ARGV: dedupe window, channel, registry or '', whether the streams are registered (1 or 0), subjects of the streams;
-- then for each entry: number of its stream, id, data, meta.
-- Returns sequence and duplicate flag of each entry. Returns false if a new stream must be registered first.
-- @include "include/store"
local WOKEN_MAX = 100
local windowMs, channel, registry, isRegistered = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local streams = #KEYS / 2
local subjectAt = 4
if registry == '' and isRegistered == '0' then
  for at = 1, streams do
    if redis.call('EXISTS', KEYS[at * 2]) == 0 then return false end
  end
end
local idPrefixes = {}
for at = 1, streams do
  local markKey = KEYS[at * 2]
  idPrefixes[at] = markKey .. ':' .. markOf(markKey, registry, ARGV[subjectAt + at]) .. ':'
end
local result, isStored, message = {}, {}, {'s'}
for at = subjectAt + streams + 1, #ARGV, 4 do
  local number, messageId, data, meta = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local id, isDuplicate = store(KEYS[number * 2 - 1], idPrefixes[number] .. messageId, windowMs, data, meta)
  result[#result + 1] = id
  result[#result + 1] = isDuplicate
  if isDuplicate == 0 and not isStored[number] then
    isStored[number] = true
    message[#message + 1] = ARGV[subjectAt + number]
  end
end
if #message > WOKEN_MAX then message = {'s', '*'} end
if #message > 1 then redis.call('PUBLISH', channel, table.concat(message, ' ')) end
return result
