// The embedded database's schema, as numbered steps; `user_version` counts those taken.

import type { DatabaseSync } from 'node:sqlite';
import { sqliteBusClaims, sqliteBusTables } from '../bus/tables.ts';
import {
  sqliteOutboxJobs,
  sqliteOutboxTables,
  sqliteOutboxTotals,
} from '../outbox/tables.ts';
import { sqliteReadModelTables } from '../read-models/tables.ts';
import { sqliteSagaTables } from './saga-tables.ts';
import { sqliteTaskTables } from '../tasks/tables.ts';
import { sqliteTraceTables } from './trace-tables.ts';
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
     -- The ids of events below it are in event_ids; of those from it on, only in events.
     ids_to integer not null default 0
   ) strict;
   -- Types, categories and tenants are few and long: events refer to them by number.
   create table names (id integer primary key, name text not null unique) strict;
   -- Which types occur in which category (0: none): how a filter by type or category finds its events.
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
   -- Within the stream: ids are looked for there only. Filled some dozens at a time: an index would
   -- change a page of its own with every event, and the sync of each commit pays by the page.
   create table event_ids (
     stream_id integer not null,
     event_id text not null,
     revision integer not null,
     primary key (stream_id, event_id)
   ) strict, without rowid;
   -- SQLite appends the sequence to every index: this one reads a type's events in order.
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
  sqliteSagaTables,
  sqliteOutboxTables,
  sqliteTraceTables,
  sqliteOutboxJobs,
  sqliteBusTables,
  sqliteOutboxTotals,
  sqliteTaskTables,
  sqliteBusClaims,
];

/** Durable on power loss: every acknowledged append was synced (`synchronous = full`). */
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

/** Takes the steps that are left, under the write lock, so that two processes take each once. */
export function migrateSqlite(database: DatabaseSync): void {
  if (versionOf(database) === sqliteMigrations.length) return;
  database.exec('begin immediate');
  try {
    const from = versionOf(database);
    if (from > sqliteMigrations.length) {
      throw new Error(`the file was written by a newer version (schema ${from})`);
    }
    for (const step of sqliteMigrations.slice(from)) database.exec(step);
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
