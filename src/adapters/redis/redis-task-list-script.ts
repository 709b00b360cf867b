// Pages of jobs, newest first, from the sets in which they stand by when they were enqueued.

import { redisScript } from './redis-script.ts';
import { luaHeads } from './redis-task-lua.ts';

/** What one script looks at, however few of it match. */
const lookMax = 2_000;

/**
 * KEYS: base, never; ARGV: ms and id to begin behind (or nothing), limit, states, tenant (`=` and it, or
 * nothing), parent (or nothing), lowest and highest of enqueued and of updated, then labels. Answers rows
 * of id, record and info, and where to go on (`<ms>/<id>`, or nothing: that was all).
 */
export const listScript = redisScript(`${luaHeads}
local cursorMs, cursorId, limit, states, tenant, parent = unpack(ARGV, 1, 6)
local enqueuedFrom, enqueuedBefore = ARGV[7], tonumber(ARGV[8])
local updatedFrom, updatedBefore = tonumber(ARGV[9]), tonumber(ARGV[10])
limit = tonumber(limit)
local highest = cursorMs ~= '' and cursorMs or '+inf'
local sources = {}
local function source(key) sources[#sources + 1] = {key = key, skip = 0, some = {}, at = 1} end
local function asks(letters) return string.find(states, '[' .. letters .. ']') ~= nil end
if parent ~= '' then source(base .. ':c:' .. parent)
elseif states == 'R' then
  local rows = {}
  for _, suffix in ipairs(redis.call('ZRANGE', runningKey, 0, -1)) do
    local t = recordOf(suffix)
    if t and (cursorMs == '' or tonumber(t[15]) <= tonumber(cursorMs)) then
      rows[#rows + 1] = {tonumber(t[15]), suffix, t[15]}
    end
  end
  table.sort(rows, function(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end)
  local some = {}
  for _, row in ipairs(rows) do some[#some + 1] = row[2] some[#some + 1] = row[3] end
  sources[1] = {some = some, at = 1, isDone = true}
else
  if states == 'W' or states == 'S' then source(stateKeys[states])
  elseif asks('QRWS') then source(openKey) end
  for _, letter in ipairs({'C', 'F', 'X'}) do
    if asks(letter) then source(stateKeys[letter]) end
  end
end
local function peek(each)
  while true do
    if each.at > #each.some then
      if each.isDone then return nil end
      each.some = redis.call('ZREVRANGEBYSCORE', each.key, highest, enqueuedFrom, 'WITHSCORES', 'LIMIT', each.skip, 100)
      each.skip, each.at = each.skip + #each.some / 2, 1
      if #each.some < 200 then each.isDone = true end
      if #each.some == 0 then return nil end
    end
    local suffix, ms = each.some[each.at], tonumber(each.some[each.at + 1])
    if cursorMs == '' or ms < tonumber(cursorMs) or suffix < cursorId then return ms, suffix end
    each.at = each.at + 2
  end
end
local function hasLabels(lines)
  for at = 11, #ARGV do
    if not string.find('\\n' .. lines .. '\\n', '\\n' .. ARGV[at] .. '\\n', 1, true) then return false end
  end
  return true
end
local rows, looked = {}, 0
local lastMs, lastId
while #rows < limit and looked < ${lookMax} do
  local best, bestMs, bestId
  for _, each in ipairs(sources) do
    local ms, id = peek(each)
    if ms and (not best or ms > bestMs or (ms == bestMs and id > bestId)) then best, bestMs, bestId = each, ms, id end
  end
  if not best or bestMs < tonumber(enqueuedFrom) then return {rows, ''} end
  best.at = best.at + 2
  looked = looked + 1
  lastMs, lastId = bestMs, bestId
  local record = redis.call('GET', jobs .. bestId)
  local t = record and split(record)
  if t and string.find(states, t[1], 1, true) and (tenant == '' or tenant == '=' .. t[16])
    and tonumber(t[15]) < enqueuedBefore
    and tonumber(t[10]) >= updatedFrom and tonumber(t[10]) < updatedBefore
    and (#ARGV == 10 or hasLabels(string.match(t[19], '^[^\\n]*\\n(.-)\\n\\n') or '')) then
    local fixed = redis.call('GET', fixes .. bestId)
    rows[#rows + 1] = {bestId, record, string.match(fixed or '', '^([^\\n]*)')}
  end
end
for _, each in ipairs(sources) do
  if peek(each) then return {rows, text(lastMs) .. '/' .. lastId} end
end
return {rows, ''}`);
