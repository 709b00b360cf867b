// The schema of the file, as numbered migrations; `user_version` is the number of those applied.

import type { DatabaseSync } from 'node:sqlite';
import { MillraceError } from '../../../foundation/error.ts';
import { readModelTables } from '../../../projections/sql/tables.ts';
import { sagaTables } from '../../../reactors/sql-saga-index.ts';
import {
  deadLetterCause,
  subscriptionTables,
  type SqlTypes,
} from '../../../subscriptions/sql/tables.ts';
import { traceTables } from '../../../traces/sql-trace-index.ts';
import { sqliteBusTables } from '../bus/tables.ts';
import {
  isoTime,
  sqliteOutboxAttempts,
  sqliteOutboxJobs,
  sqliteOutboxTables,
  sqliteOutboxDiscarded,
  sqliteOutboxTotals,
} from '../outbox/tables.ts';
import { sqliteTaskTables } from '../tasks/tables.ts';

const types: SqlTypes = {
  at: '',
  key: 'text',
  bigint: 'integer',
  double: 'real',
  flag: 'integer',
  byKey: ' strict, without rowid',
  updated: ' strict, without rowid',
  plain: ' strict',
};

export const sqliteMigrations: readonly string[] = [
  `create table streams (
     id integer primary key,
     name text not null unique,
     revision integer not null default -1,
     truncate_before integer not null default 0,
     max_count integer,
     max_age_s integer,
     tombstoned integer not null default 0,
     -- Ids of events below this revision are in event_ids; later ids are only in events.
     ids_to integer not null default 0
   ) strict;
   -- Types, categories and tenants are few and long, so events refer to them by number.
   create table names (id integer primary key, name text not null unique) strict;
   -- Which types occur in which category (0: none): a filter by type or category finds its events with it.
   create table category_types (
     id integer primary key,
     category_id integer not null,
     type_id integer not null,
     unique (category_id, type_id)
   ) strict;
   create table events (
     sequence integer primary key,
     stream_id integer not null,
     revision integer not null,
     event_id text not null,
     type_id integer not null,
     category_id integer not null,
     tenant_id integer not null,
     recorded_at_ms integer not null,
     payload text not null,
     meta text not null
   ) strict;
   create unique index events_by_stream on events (stream_id, revision);
   -- Ids are looked up within a stream only. The table is filled for some dozens of events at a time. An index on
   -- events would change another page with every event, and the cost of a sync grows with the pages.
   create table event_ids (
     stream_id integer not null,
     event_id text not null,
     revision integer not null,
     primary key (stream_id, event_id)
   ) strict, without rowid;
   -- SQLite appends the sequence to every index, so this one reads the events of a type in order.
   create index events_by_type on events (type_id);
   create table snapshots (
     stream text primary key,
     revision integer not null,
     event_id text not null,
     code_version integer not null,
     taken_at text not null,
     state text not null
   ) strict;
   create table command_keys (
     key text primary key,
     stream text not null,
     command text not null
   ) strict, without rowid;`,
  `create table subscriptions (
     name text primary key,
     shards integer not null,
     paused integer not null default 0
   ) strict, without rowid;
   ${subscriptionTables(types)}`,
  // The filter of a subscription, to compute its lag; and dead letters with the names of the event flow document.
  `alter table subscriptions add column filter text;
   create view dead_letter_queue as
     select id as _id, event_id as eventId, event_type as eventType, aggregate_id as aggregateId,
       payload, error, attempts, ${isoTime('created_at_ms')} as createdAt, status,
       ${isoTime('replayed_at_ms')} as replayedAt, replayed_by as replayedBy, notes, handler, history
     from dead_letters;`,
  `create table read_models (id integer primary key, name text not null unique) strict;
   -- A removed document keeps its row, with null, as a fence against older events.
   create table read_documents (
     model integer not null,
     tenant text not null,
     id text not null,
     stream text not null,
     revision integer not null,
     document text,
     entries text not null,
     primary key (model, tenant, id)
   ) strict;
   ${readModelTables(types)}`,
  sagaTables(types),
  sqliteOutboxTables,
  traceTables(types),
  sqliteOutboxJobs,
  sqliteBusTables,
  sqliteOutboxTotals,
  sqliteTaskTables,
  // This migration created a table that is no longer used. Its number stays taken: existing files have applied it.
  'drop table if exists bus_claims;',
  // Earlier versions read keys from the table `subject_keys`, which `moveSubjectKeys` removes; they must reject the file.
  '',
  `${deadLetterCause(types)}
   ${sqliteOutboxAttempts}`,
  sqliteOutboxDiscarded,
];

/** `synchronous = full`: every acknowledged append survives a power loss. */
export function configureSqlite(database: DatabaseSync, busyTimeoutMs: number): void {
  database.exec(`
    pragma busy_timeout = ${busyTimeoutMs};
    pragma journal_mode = wal;
    pragma synchronous = full;
    pragma secure_delete = on;
    pragma cache_size = -65536;
    pragma temp_store = memory;
    pragma journal_size_limit = 67108864;
  `);
}

/** Copies the log into the file and empties it; false: another connection reads, and the log stays. */
export function truncateLog(database: DatabaseSync): boolean {
  return database.prepare('pragma wal_checkpoint(truncate)').get()?.['busy'] === 0;
}

/** Removes deleted content from the log; `secure_delete` has overwritten it in the file. */
export function eraseFromDisk(database: DatabaseSync): void {
  if (truncateLog(database)) return;
  throw new MillraceError(
    'STORE_UNAVAILABLE',
    'the data was deleted, but the log of the file still contains it, because another connection reads the file: repeat the call',
  );
}

/** Applies the missing migrations under the write lock, so two processes apply each of them once. */
export function migrateSqlite(database: DatabaseSync): void {
  if (versionOf(database) === sqliteMigrations.length) return;
  database.exec('begin immediate');
  try {
    const from = versionOf(database);
    if (from > sqliteMigrations.length) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `the file was written by a newer version of Millrace (schema ${from}, this version knows ${sqliteMigrations.length})`,
        { details: { version: from, known: sqliteMigrations.length } },
      );
    }
    for (const migration of sqliteMigrations.slice(from)) database.exec(migration);
    database.exec(`pragma user_version = ${sqliteMigrations.length}`);
    database.exec('commit');
  } catch (error) {
    database.exec('rollback');
    throw error;
  }
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('pragma user_version').get()?.['user_version']);
}
