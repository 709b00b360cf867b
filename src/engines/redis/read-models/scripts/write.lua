-- Writes documents of one tenant and model together with their entries in indexes, sets, ranges and lists.
--
-- KEYS: fences, generation, lists, then the keys of the names in ARGV[1], then one key for each document.
-- ARGV: names as JSON ({ i, s, z, l }), document kind ('json' or 'hash'), then id, fence and content of each document.
-- Empty content removes the document. An empty fence deletes the stored fence without comparing it.
-- Returns {'names', missing names} without writing anything, or {'done', one outcome for each document}.
--
-- A fence is JSON: t = stream, r = revision, d = whether the document exists, i = indexes, s = sets, z = ranges,
-- e = an erasure, which also replaces a document of the same revision.
local WRITTEN, STALE, FOREIGN = 0, 1, 2
local FIELDS_MAX = 2000
local fencesKey, generationKey, listsKey = KEYS[1], KEYS[2], KEYS[3]
local names, documentKind = cjson.decode(ARGV[1]), ARGV[2]
local keys = {}
local keyAt = 4
for _, kind in ipairs({'i', 's', 'z', 'l'}) do
  keys[kind] = {}
  for _, name in ipairs(names[kind]) do
    keys[kind][name] = KEYS[keyAt]
    keyAt = keyAt + 1
  end
end
local missing = {}
local function need(kind, name)
  if not keys[kind][name] then table.insert(missing, kind .. name) end
end
local count = (#ARGV - 2) / 3
local stored = {}
for n = 1, count do
  local text = redis.call('HGET', fencesKey, ARGV[n * 3])
  if text then
    local old = cjson.decode(text)
    stored[n] = old
    for name in pairs(old.i) do need('i', name) end
    for _, name in ipairs(old.s) do need('s', name) end
    for name in pairs(old.z) do need('z', name) end
  end
end
local lists = redis.call('HKEYS', listsKey)
for _, hash in ipairs(lists) do need('l', hash) end
if #missing > 0 then return {'names', missing} end

local empty = {i = {}, s = {}, z = {}}

local function updateEntries(id, old, new)
  for name, value in pairs(old.i) do
    -- If another document has taken over the value, the index entry belongs to that document.
    if new.i[name] ~= value and redis.call('HGET', keys.i[name], value) == id then
      redis.call('HDEL', keys.i[name], value)
    end
  end
  local remains = {}
  for _, name in ipairs(new.s) do remains[name] = true end
  for _, name in ipairs(old.s) do
    if not remains[name] then redis.call('SREM', keys.s[name], id) end
  end
  for name in pairs(old.z) do
    if not new.z[name] then redis.call('ZREM', keys.z[name], id) end
  end
  for name, value in pairs(new.i) do redis.call('HSET', keys.i[name], value, id) end
  for _, name in ipairs(new.s) do redis.call('SADD', keys.s[name], id) end
  for name, score in pairs(new.z) do redis.call('ZADD', keys.z[name], score, id) end
end

local function setDocument(key, text)
  if text == '' or documentKind == 'hash' then redis.call('DEL', key) end
  if text == '' then return end
  if documentKind == 'json' then redis.call('SET', key, text) return end
  local fields = cjson.decode(text)
  for from = 1, #fields, FIELDS_MAX do
    redis.call('HSET', key, unpack(fields, from, math.min(from + FIELDS_MAX - 1, #fields)))
  end
end

local function write(n)
  local id, fence, text = ARGV[n * 3], ARGV[n * 3 + 1], ARGV[n * 3 + 2]
  local old, new = stored[n] or empty, empty
  if fence ~= '' then
    new = cjson.decode(fence)
    if old.t and old.t ~= new.t then return FOREIGN end
    local isErased = new.e and old.r == new.r
    if old.r and tonumber(old.r) >= tonumber(new.r) and not isErased then return STALE end
  end
  updateEntries(id, old, new)
  setDocument(KEYS[keyAt + n - 1], text)
  if fence == '' then redis.call('HDEL', fencesKey, id)
  else redis.call('HSET', fencesKey, id, fence) end
  return WRITTEN
end

local outcomes = {}
local isChanged = false
for n = 1, count do
  outcomes[n] = write(n)
  if outcomes[n] == WRITTEN then isChanged = true end
end
if isChanged then
  for _, hash in ipairs(lists) do redis.call('DEL', keys.l[hash]) end
  redis.call('DEL', listsKey)
  if redis.call('EXISTS', generationKey) == 1 then
    redis.call('INCR', generationKey)
    redis.call('PERSIST', generationKey)
  else
    -- The first generation is the time in microseconds, so that no earlier generation is reused.
    local time = redis.call('TIME')
    redis.call('SET', generationKey, string.format('%.0f', time[1] * 1000000 + time[2]))
  end
  -- Without documents, the generation expires after a day, when no process can still be loading a list.
  if redis.call('EXISTS', fencesKey) == 0 then redis.call('PEXPIRE', generationKey, 86400000) end
end
return {'done', outcomes}
