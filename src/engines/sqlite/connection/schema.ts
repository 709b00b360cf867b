// The schema of the file, as numbered migrations; `user_version` is the number of those applied.

import type { DatabaseSync } from 'node:sqlite';
import { MillraceError } from '../../../foundation/error.ts';
import { sqliteBusTables } from '../bus/tables.ts';
import { sqliteOutboxJobs, sqliteOutboxTables, sqliteOutboxTotals } from '../outbox/tables.ts';
import { sqliteReadModelTables } from '../read-models/tables.ts';
import { sqliteTaskTables } from '../tasks/tables.ts';
import { sqliteSubscriptionTables, sqliteSubscriptionViews } from '../subscriptions/tables.ts';

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
   -- Ids are looked up within a stream only. The table is filled for some dozens of events at a time: an index would
   -- change another page with every event, and a sync costs per page.
   create table event_ids (
     stream_id integer not null,
     event_id text not null,
     revision integer not null,
     primary key (stream_id, event_id)
   ) strict, without rowid;
   -- SQLite appends the sequence to every index, so this one reads the events of a type in order.
   create index events_by_type on events (type_id);
   create table subject_keys (
     subject text primary key,
     key blob,
     forgotten_at_ms integer
   ) strict, without rowid;
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
  sqliteSubscriptionTables,
  sqliteSubscriptionViews,
  sqliteReadModelTables,
  `create table saga_index (
     stream text primary key,
     saga text not null,
     tenant text not null,
     saga_key text not null,
     status text not null,
     revision integer not null,
     updated_at_ms integer not null,
     due_at_ms integer,
     shard integer not null,
     reason text
   ) strict, without rowid;
   create index saga_index_due on saga_index (saga, shard, due_at_ms) where due_at_ms is not null;
   create index saga_index_by_status on saga_index (saga, status, stream);`,
  sqliteOutboxTables,
  `create table trace_events (
     correlation_id text not null,
     position integer not null,
     tenant text not null,
     stream text not null,
     revision integer not null,
     recorded_at_ms integer not null,
     primary key (correlation_id, position)
   ) strict, without rowid;
   -- Finds old rows; it grows at its end only.
   create index trace_events_by_time on trace_events (recorded_at_ms);`,
  sqliteOutboxJobs,
  sqliteBusTables,
  sqliteOutboxTotals,
  sqliteTaskTables,
  // Created a table that no version uses any more; the number stays taken, or existing files would look newer.
  'drop table if exists bus_claims;',
];

/** `synchronous = full`: every acknowledged append survives a power loss. */
export function configureSqlite(database: DatabaseSync, busyTimeoutMs: number): void {
  database.exec(`
    pragma busy_timeout = ${busyTimeoutMs};
    pragma journal_mode = wal;
    pragma synchronous = full;
    pragma cache_size = -65536;
    pragma temp_store = memory;
    pragma journal_size_limit = 67108864;
  `);
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
