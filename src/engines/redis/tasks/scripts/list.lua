-- A page of jobs, newest first, merged from the sorted sets of their states.
-- KEYS: base, never.
-- ARGV: time and id after which the page starts (or ''), limit, letters of the states, tenant (`=<name>` or ''), parent
-- or '', bounds of the enqueue time, bounds of the update time, maximum of bytes or '', labels.
-- Returns rows of id, record and info, and the cursor of the next page (`<ms>/<id>`, or '' after the last page).
-- @include "include/record"
-- @include "include/batch"
-- The maximum number of jobs that one call reads, even if few of them match.
local SCANNED_MAX, PAGE, FIRST_LABEL = 2000, 100, 12
local cursorMs, cursorId, limit, states, tenant, parent = unpack(ARGV, 1, 6)
local enqueuedFrom, enqueuedBefore = ARGV[7], tonumber(ARGV[8])
local updatedFrom, updatedBefore = tonumber(ARGV[9]), tonumber(ARGV[10])
local bytesMax, bytes = tonumber(ARGV[11]) or math.huge, 0
limit = tonumber(limit)
local highest = cursorMs ~= '' and cursorMs or '+inf'
local sources = {}
local function addSource(key) sources[#sources + 1] = {key = key, skip = 0, cells = {}, at = 1} end
local function wantsAny(letters) return string.find(states, '[' .. letters .. ']') ~= nil end
-- The set of running jobs is sorted by deadline, so this function sorts them by enqueue time.
local function addRunning()
  local rows = {}
  for _, id in ipairs(redis.call('ZRANGE', runningKey, 0, -1)) do
    local job = readJob(id)
    local enqueuedAt = job and tonumber(job[F.enqueuedAtMs])
    if job and (cursorMs == '' or enqueuedAt <= tonumber(cursorMs)) then
      rows[#rows + 1] = {ms = enqueuedAt, id = id, score = job[F.enqueuedAtMs]}
    end
  end
  table.sort(rows, function(a, b) return a.ms > b.ms or (a.ms == b.ms and a.id > b.id) end)
  local cells = {}
  for _, row in ipairs(rows) do cells[#cells + 1] = row.id cells[#cells + 1] = row.score end
  sources[1] = {cells = cells, at = 1, isDone = true}
end
if parent ~= '' then addSource(base .. CHILDREN .. parent)
elseif states == RUNNING then addRunning()
else
  if states == WAITING or states == SCHEDULED then addSource(stateKeys[states])
  elseif wantsAny(QUEUED .. RUNNING .. WAITING .. SCHEDULED) then addSource(openKey) end
  for _, state in ipairs({COMPLETED, FAILED, CANCELLED}) do
    if wantsAny(state) then addSource(stateKeys[state]) end
  end
end
-- Returns time and id of the next job of a source.
local function peek(source)
  while true do
    if source.at > #source.cells then
      if source.isDone then return nil end
      source.cells = redis.call(
        'ZREVRANGEBYSCORE', source.key, highest, enqueuedFrom, 'WITHSCORES', 'LIMIT', source.skip, PAGE)
      source.skip, source.at = source.skip + #source.cells / 2, 1
      if #source.cells < 2 * PAGE then source.isDone = true end
      if #source.cells == 0 then return nil end
    end
    local id, ms = source.cells[source.at], tonumber(source.cells[source.at + 1])
    if cursorMs == '' or ms < tonumber(cursorMs) or id < cursorId then return ms, id end
    source.at = source.at + 2
  end
end
local function hasLabels(job)
  local labels = string.match(job[F.rest], '^[^\n]*\n(.-)\n\n') or ''
  for at = FIRST_LABEL, #ARGV do
    if not string.find('\n' .. labels .. '\n', '\n' .. ARGV[at] .. '\n', 1, true) then return false end
  end
  return true
end
local function matches(job)
  local updatedAt = tonumber(job[F.updatedAtMs])
  return string.find(states, job[F.state], 1, true) and (tenant == '' or tenant == '=' .. job[F.tenant])
    and tonumber(job[F.enqueuedAtMs]) < enqueuedBefore
    and updatedAt >= updatedFrom and updatedAt < updatedBefore
    and (#ARGV < FIRST_LABEL or hasLabels(job))
end
local rows, scanned = {}, 0
local lastMs, lastId
while #rows < limit and bytes < bytesMax and scanned < SCANNED_MAX do
  local newest, newestMs, newestId
  for _, source in ipairs(sources) do
    local ms, id = peek(source)
    if ms and (not newest or ms > newestMs or (ms == newestMs and id > newestId)) then
      newest, newestMs, newestId = source, ms, id
    end
  end
  if not newest or newestMs < tonumber(enqueuedFrom) then return {rows, ''} end
  newest.at = newest.at + 2
  scanned = scanned + 1
  lastMs, lastId = newestMs, newestId
  local record = redis.call('GET', recordPrefix .. newestId)
  if record and matches(parseRecord(record)) then
    local fixed = redis.call('GET', fixedPrefix .. newestId)
    rows[#rows + 1] = {newestId, record, string.match(fixed or '', '^([^\n]*)')}
    bytes = bytes + #record + #rows[#rows][3]
  end
end
for _, source in ipairs(sources) do
  if peek(source) then return {rows, text(lastMs) .. '/' .. lastId} end
end
return {rows, ''}
