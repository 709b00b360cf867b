-- @include "keys"
-- The record of a job is a string with one line for each field. record.test.ts compares this list with record.ts.
local F = {
  state = 1, revision = 2, fence = 3, priority = 4, dueAtMs = 5, failures = 6, deadlineMs = 7, cancelAtMs = 8,
  claimedAtMs = 9, updatedAtMs = 10, endedAtMs = 11, queueSignal = 12, terminalSignal = 13, worker = 14,
  enqueuedAtMs = 15, tenant = 16, concurrencyKey = 17, hasHash = 18, rest = 19,
}
local RECORD_PATTERN = '^(%a)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n(%S+)\n'
  .. '([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n()'
local SCHEDULED, QUEUED, RUNNING, WAITING = 'S', 'Q', 'R', 'W'
local COMPLETED, FAILED, CANCELLED = 'C', 'F', 'X'
-- One sorted set per state with its jobs, by enqueue time.
local stateKeys = {}
for _, state in ipairs({WAITING, SCHEDULED, COMPLETED, FAILED, CANCELLED}) do
  stateKeys[state] = base .. ':s:' .. state
end
local function isEnded(state) return state == COMPLETED or state == FAILED or state == CANCELLED end
-- Stands for a record that cannot be read: a due job, which the next claim fails. `damagedHead` has the same values.
local function damagedRecord(priority, enqueuedAt, tenant)
  return 'Q\n0\n0\n' .. priority .. '\n0\n0\n8640000000000000\n0\n0\n0\n0\n\n\n\n'
    .. enqueuedAt .. '\n' .. tenant .. '\n\n1\n\n\n{}'
end
-- Keeps the unreadable text in the hash of the job.
local function markDamaged(id, record)
  redis.call('HSET', hashPrefix .. id, 'damaged', 'record', '~damaged', record)
end
-- The rest of a record: parent, labels, an empty line, and the run.
local function parseRecord(record)
  local job = {string.match(record, RECORD_PATTERN)}
  if not job[1] then
    record = damagedRecord('0', '0', '')
    job = {string.match(record, RECORD_PATTERN)}
    job.isDamaged = true
  end
  job[F.rest] = string.sub(record, job[F.rest])
  return job
end
local function formatRecord(job) return table.concat(job, '\n') end
local function readJob(id)
  local record = redis.call('GET', recordPrefix .. id)
  return record and parseRecord(record)
end
