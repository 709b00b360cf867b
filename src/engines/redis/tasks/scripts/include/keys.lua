-- The keys of one task type. KEYS[1] is their common prefix and also the hash of the type's settings. KEYS[2] never
-- exists (see `never` in keyspace.ts). Jobs are named by their id without the type.
local base = KEYS[1]
-- The record of a job; its info and payload, which never change; the hash of its steps and events.
local recordPrefix, fixedPrefix, hashPrefix = base .. ':j:', base .. ':p:', base .. ':f:'
-- Sorted sets: running jobs by the time when they are overdue, open jobs by enqueue time, ended jobs by end time,
-- scheduled jobs by due time.
local runningKey, openKey, endedKey, scheduledKey = base .. ':x', base .. ':o', base .. ':e', base .. ':u'
-- A lane holds the due jobs of one priority and tenant by due time. LANES: the lanes that are not empty, by priority
-- and turn. TURNS: the turns of empty lanes. LATER: jobs whose due time is in the future, by due time.
local LANE, LANES, TURNS, LATER = ':q:', ':l', ':t', ':d'
-- Running jobs of each concurrency key, jobs blocked by a key, keys that block jobs, and when each rate bucket is full.
local KEY_COUNTS, BLOCKED, BLOCKING_KEYS, RATES = ':r', ':k:', ':ks', ':f'
-- Running jobs of each worker; when workers expire (on a cluster only); processes that accept a hand-off.
local WORKER_COUNTS, WORKERS, HAND_OFFS = ':n', ':b', ':h'
-- Dedupe keys, the times when they expire, and the children of a job.
local DEDUPE, DEDUPE_EXPIRY, CHILDREN = ':w', ':wz', ':c:'
