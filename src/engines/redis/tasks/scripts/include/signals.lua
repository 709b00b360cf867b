-- @include "../../../bus/scripts/include/registry"
-- Stores signals in bus streams that share the slot of the job.
local signalled, hasMark = {}, {}
local function publishSignal(stream, mark, registry, subject, data)
  signalled[subject] = true
  if not hasMark[subject] then
    hasMark[subject] = true
    markOf(mark, registry, subject)
  end
  return redis.call('XADD', stream, '*', 'data', data)
end
local function wakeReaders(channel)
  local words = {'s'}
  for subject in pairs(signalled) do words[#words + 1] = subject end
  if #words > 1 then redis.call('PUBLISH', channel, table.concat(words, ' ')) end
end
