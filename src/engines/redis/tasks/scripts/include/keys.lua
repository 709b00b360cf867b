-- The keys of one task type. KEYS[1] is their common prefix and also the hash of the type's settings. KEYS[2] never
-- exists (see `never` in keyspace.ts). Jobs are named by their id without the type.
local base = KEYS[1]
-- recordPrefix: the record of a job. fixedPrefix: its info and payload, which never change. hashPrefix: the hash of its
-- steps and events.
local recordPrefix, fixedPrefix, hashPrefix = base .. ':j:', base .. ':p:', base .. ':f:'
-- Sorted sets of jobs. running: by the time when a job is overdue. open: by enqueue time. ended: by the time of the
-- terminal state. scheduled: by due time.
local runningKey, openKey, endedKey, scheduledKey = base .. ':x', base .. ':o', base .. ':e', base .. ':u'
-- A lane holds the due jobs of one priority and tenant by due time. LANES: the lanes that are not empty, by priority
-- and turn. TURNS: the turns of empty lanes. LATER: jobs whose due time is in the future, by due time.
local LANE, LANES, TURNS, LATER = ':q:', ':l', ':t', ':d'
-- KEY_COUNTS: number of running jobs per concurrency key. BLOCKED: jobs blocked by a key. BLOCKING_KEYS: keys that block
-- jobs. RATES: when each rate bucket is full.
local KEY_COUNTS, BLOCKED, BLOCKING_KEYS, RATES = ':r', ':k:', ':ks', ':f'
-- WORKER_COUNTS: number of running jobs per worker. WORKERS: when each worker expires (cluster only).
local WORKER_COUNTS, WORKERS = ':n', ':b'
-- DEDUPE: job id per dedupe key. DEDUPE_EXPIRY: expiry per dedupe key. CHILDREN: children of a job.
local DEDUPE, DEDUPE_EXPIRY, CHILDREN = ':w', ':wz', ':c:'
