// The scripts of read models. Every key that they touch is declared, so that a cluster which is
// moving the slot refuses the call (and it is tried again) instead of seeing a part of the keys.

import { redisScript } from './redis-script.ts';

/**
 * Writes documents of one tenant and model, each with all of its entries, if its fence lets it.
 *
 * KEYS: fences, generation, lists, then those of the names in ARGV[1], then one for each document.
 * ARGV: names as JSON ({ i, s, z, l }), 'json' or 'hash', then for each document its id, its fence
 * and its text. No text: it is removed. No fence: it is forgotten, whatever the fence says.
 * Answers: 'names' and those that are missing, and nothing was done; or an outcome for each document.
 */
export const writeScript = redisScript(`
local kinds = {'i', 's', 'z', 'l'}
local names = cjson.decode(ARGV[1])
local keys = {}
local at = 4
for _, kind in ipairs(kinds) do
  keys[kind] = {}
  for _, name in ipairs(names[kind]) do
    keys[kind][name] = KEYS[at]
    at = at + 1
  end
end
local missing = {}
local function need(kind, name)
  if not keys[kind][name] then table.insert(missing, kind .. name) end
end
local count = (#ARGV - 2) / 3
local kept = {}
for n = 1, count do
  local text = redis.call('HGET', KEYS[1], ARGV[n * 3])
  if text then
    local old = cjson.decode(text)
    kept[n] = old
    for name in pairs(old.i) do need('i', name) end
    for _, name in ipairs(old.s) do need('s', name) end
    for name in pairs(old.z) do need('z', name) end
  end
end
local lists = redis.call('HKEYS', KEYS[3])
for _, hash in ipairs(lists) do need('l', hash) end
if #missing > 0 then return {'names', missing} end

local nothing = {i = {}, s = {}, z = {}}
local function write(n)
  local id, fence, text = ARGV[n * 3], ARGV[n * 3 + 1], ARGV[n * 3 + 2]
  local old = kept[n] or nothing
  local new = nothing
  if fence ~= '' then
    new = cjson.decode(fence)
    if old.t and old.t ~= new.t then return 2 end
    if old.r and tonumber(old.r) >= tonumber(new.r) then return 1 end
  end
  for name, value in pairs(old.i) do
    -- Another document may have taken the value over: then the entry is not ours.
    if new.i[name] ~= value and redis.call('HGET', keys.i[name], value) == id then
      redis.call('HDEL', keys.i[name], value)
    end
  end
  local stays = {}
  for _, name in ipairs(new.s) do stays[name] = true end
  for _, name in ipairs(old.s) do
    if not stays[name] then redis.call('SREM', keys.s[name], id) end
  end
  for name in pairs(old.z) do
    if not new.z[name] then redis.call('ZREM', keys.z[name], id) end
  end
  for name, value in pairs(new.i) do redis.call('HSET', keys.i[name], value, id) end
  for _, name in ipairs(new.s) do redis.call('SADD', keys.s[name], id) end
  for name, score in pairs(new.z) do redis.call('ZADD', keys.z[name], score, id) end
  local key = KEYS[at + n - 1]
  if text == '' or ARGV[2] == 'hash' then redis.call('DEL', key) end
  if text ~= '' and ARGV[2] == 'json' then redis.call('SET', key, text) end
  if text ~= '' and ARGV[2] == 'hash' then
    local fields = cjson.decode(text)
    for from = 1, #fields, 2000 do
      redis.call('HSET', key, unpack(fields, from, math.min(from + 1999, #fields)))
    end
  end
  if fence == '' then redis.call('HDEL', KEYS[1], id) else redis.call('HSET', KEYS[1], id, fence) end
  return 0
end

local outcomes = {}
local changed = false
for n = 1, count do
  outcomes[n] = write(n)
  if outcomes[n] == 0 then changed = true end
end
if changed then
  for _, hash in ipairs(lists) do redis.call('DEL', keys.l[hash]) end
  redis.call('DEL', KEYS[3])
  if redis.call('EXISTS', KEYS[2]) == 1 then
    redis.call('INCR', KEYS[2])
    redis.call('PERSIST', KEYS[2])
  else
    -- Never one that was there before.
    local time = redis.call('TIME')
    redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000000 + time[2]))
  end
  -- All is gone: so is this, once nobody can be loading a list any more.
  if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('PEXPIRE', KEYS[2], 86400000) end
end
return {'done', outcomes}`);

/** KEYS: fences, one for each document. ARGV: 'json' or 'hash', ids. Fence and text of each. */
export const loadScript = redisScript(`
local found = {}
for n = 1, #ARGV - 1 do
  local fence = redis.call('HGET', KEYS[1], ARGV[n + 1])
  local text = false
  if fence and ARGV[1] == 'json' then text = redis.call('GET', KEYS[n + 1]) end
  if fence and ARGV[1] == 'hash' then text = redis.call('HGETALL', KEYS[n + 1]) end
  found[n] = {fence, text}
end
return found`);

/**
 * A page of a sorted set: behind a place (score, id) that need not exist any more, within bounds.
 * KEYS: the set. ARGV: 'ascending' or 'descending', limit, from, to (texts, or ''), score and id of
 * the place (or ''). Answers ids and scores, one more than the limit if there is more.
 */
export const rangeScript = redisScript(`
local key, limit = KEYS[1], tonumber(ARGV[2])
local low = 0
if ARGV[3] ~= '' then low = redis.call('ZCOUNT', key, '-inf', '(' .. ARGV[3]) end
local high = redis.call('ZCARD', key) - 1
if ARGV[4] ~= '' then high = redis.call('ZCOUNT', key, '-inf', ARGV[4]) - 1 end
-- As Redis sorts: byte by byte. Lua's own comparison follows the language of the machine.
local function less(a, b)
  for at = 1, math.min(#a, #b) do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
  end
  return #a < #b
end
if ARGV[6] ~= '' then
  local score, id = tonumber(ARGV[5]), ARGV[6]
  local function before(rank, orSame)
    local row = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
    local at = tonumber(row[2])
    if at ~= score then return at < score end
    if row[1] == id then return orSame end
    return less(row[1], id)
  end
  local orSame = ARGV[1] == 'ascending'
  local from, to = 0, redis.call('ZCARD', key)
  while from < to do
    local middle = math.floor((from + to) / 2)
    if before(middle, orSame) then from = middle + 1 else to = middle end
  end
  if ARGV[1] == 'ascending' then low = math.max(low, from) else high = math.min(high, from - 1) end
end
if low > high then return {} end
if ARGV[1] == 'ascending' then
  return redis.call('ZRANGE', key, low, math.min(high, low + limit), 'WITHSCORES')
end
local size = redis.call('ZCARD', key)
local first = size - 1 - high
return redis.call('ZRANGE', key, first, math.min(size - 1 - low, first + limit), 'REV', 'WITHSCORES')`);

/** KEYS: the list, generation, lists. ARGV: hash. Whether it is kept, the ids, the generation. */
export const listScript = redisScript(`
local generation = redis.call('GET', KEYS[2]) or '0'
local ids = redis.call('LRANGE', KEYS[1], 0, -1)
if #ids > 0 then return {1, ids, generation} end
local ends = redis.call('HGET', KEYS[3], ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Redis has no empty lists: of one, only the entry is kept.
if ends and string.sub(ends, 1, 1) == 'e' and tonumber(string.sub(ends, 2)) > now then
  return {1, {}, generation}
end
return {0, {}, generation}`);

/**
 * KEYS: the list, generation, lists. ARGV: hash, generation, ttl, ids. 0: something was written.
 * Entries of lists that are over are removed now and then.
 */
export const keepListScript = redisScript(`
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[2] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('DEL', KEYS[1])
for from = 4, #ARGV, 2000 do
  redis.call('RPUSH', KEYS[1], unpack(ARGV, from, math.min(from + 1999, #ARGV)))
end
local ends = string.format('%.0f', now + tonumber(ARGV[3]))
if #ARGV == 3 then ends = 'e' .. ends else redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
redis.call('HSET', KEYS[3], ARGV[1], ends)
local size = redis.call('HLEN', KEYS[3])
if size % 256 == 0 then
  local all = redis.call('HGETALL', KEYS[3])
  for at = 1, #all, 2 do
    if tonumber((string.gsub(all[at + 1], 'e', ''))) <= now then
      redis.call('HDEL', KEYS[3], all[at])
    end
  end
end
return 1`);
