// The PostgreSQL schema with the tables of the event store, subscriptions, read models, sagas and traces.

import type { ClientBase } from 'pg';
import { readModelTables } from '../../../projections/sql/tables.ts';
import { sagaTables } from '../../../reactors/sql-saga-index.ts';
import {
  deadLetterCause,
  subscriptionTables,
  type SqlTypes,
} from '../../../subscriptions/sql/tables.ts';
import { traceTables } from '../../../traces/sql-trace-index.ts';
import {
  notifyWaiting,
  numberMigrations,
  runMigrations,
  type PostgresMigration,
} from '../connection/schema.ts';
import { appendEventsFunction, eventStoreFunctions } from './functions.ts';

const types: SqlTypes = {
  at: '{schema}.',
  key: 'text collate "C"',
  bigint: 'bigint',
  double: 'double precision',
  flag: 'smallint',
  byKey: '',
  // The fill factor keeps the updates of a row in its page.
  updated: ' with (fillfactor = 20)',
  plain: '',
};

const tables = `
create sequence {schema}.event_sequence as bigint;

create table {schema}.streams (
  id bigint generated always as identity primary key,
  name text collate "C" not null unique,
  revision bigint not null default -1,
  truncate_before bigint not null default 0,
  max_count bigint,
  max_age_s bigint,
  tombstoned boolean not null default false,
  -- A rejected append can leave a row without events and metadata: that stream does not exist.
  has_metadata boolean not null default false
) with (fillfactor = 70); -- Room for HOT updates: a new revision changes no index.

-- Event types, categories and tenants: few, long and repeated, so events store their numbers.
create table {schema}.names (
  id integer generated always as identity primary key,
  name text collate "C" not null unique
);

-- The types that occur in each category (0: no category): filters by type and category select event types here.
create table {schema}.category_types (
  id integer generated always as identity primary key,
  category_id integer not null,
  type_id integer not null,
  unique (category_id, type_id)
);

create table {schema}.events (
  sequence bigint primary key,
  stream_id bigint not null,
  revision bigint not null,
  type_id integer not null,
  category_id integer not null,
  tenant_id integer not null,
  recorded_at_ms bigint not null,
  event_id text collate "C" not null,
  -- JSON stored as text: only this adapter writes it, and validating it again would dominate the cost of an append.
  payload text not null,
  meta text not null,
  unique (stream_id, revision)
) with (fillfactor = 100, autovacuum_vacuum_insert_scale_factor = 0.2);
create index events_by_id on {schema}.events (stream_id, event_id);
create index events_by_type on {schema}.events (type_id, sequence);

create table {schema}.subject_keys (
  subject text collate "C" primary key,
  key bytea,
  forgotten_at_ms bigint
);

create table {schema}.snapshots (
  stream text collate "C" primary key,
  revision bigint not null,
  event_id text collate "C" not null,
  code_version integer not null,
  taken_at text not null,
  state json not null
);

create table {schema}.command_keys (
  key text collate "C" primary key,
  stream text not null,
  command text not null
);

-- For ad-hoc queries: events with the names in place of the numbers.
create view {schema}.all_events as
  select e.sequence, s.name as stream, e.revision, e.event_id, t.name as type, c.name as category,
         n.name as tenant, to_timestamp(e.recorded_at_ms / 1000.0) as recorded_at,
         e.payload::json as payload,
         -- meta is a list (src/store/event-meta.ts), or an object if an open store accepted another shape.
         coalesce(m.list ->> 0, m.named ->> 'occurredAt') as occurred_at,
         coalesce(m.list ->> 1, m.named ->> 'correlationId') as correlation_id,
         coalesce(m.list ->> 2, m.named ->> 'causationId') as causation_id,
         coalesce(m.list ->> 3, m.named ->> 'idempotencyKey') as idempotency_key,
         coalesce(m.list -> 4, m.named -> 'user') as "user",
         coalesce(m.list -> 5, m.named -> 'headers') as headers
  from {schema}.events e
  join {schema}.streams s on s.id = e.stream_id
  join {schema}.names t on t.id = e.type_id
  left join {schema}.names c on c.id = e.category_id
  left join {schema}.names n on n.id = e.tenant_id
  cross join lateral (
    select case when e.meta like '[%' then e.meta::json end as list,
           case when e.meta like '{%' then e.meta::json end as named
  ) m;
`;

const subscriptions = `
create table {schema}.subscriptions (
  name text collate "C" primary key,
  shards integer not null,
  paused smallint not null default 0,
  -- JSON of the filter, from which any process can compute the lag.
  filter text
);
${subscriptionTables(types)}
-- Dead letters for SQL readers, with the field names of the event flow document.
create view {schema}.dead_letter_queue as
  select id as "_id", event_id as "eventId", event_type as "eventType", aggregate_id as "aggregateId",
    -- json, because jsonb rejects some strings that JSON allows.
    payload::json as "payload", error as "error", attempts as "attempts",
    to_timestamp(created_at_ms / 1000.0) as "createdAt", status as "status",
    to_timestamp(replayed_at_ms / 1000.0) as "replayedAt", replayed_by as "replayedBy", notes as "notes",
    handler as "handler", history::json as "history"
  from {schema}.dead_letters;
`;

const readModels = `
create table {schema}.read_models (
  id integer generated always as identity primary key,
  name text collate "C" not null unique
);

-- A deleted document leaves its row with a null document, as the fence against older events.
create table {schema}.read_documents (
  model integer not null,
  tenant text collate "C" not null,
  id text collate "C" not null,
  stream text collate "C" not null,
  revision bigint not null,
  document text,
  entries text not null,
  -- The entries before the last write, returned to the writer.
  previous text,
  primary key (model, tenant, id)
) with (fillfactor = 80);
${readModelTables(types)}`;

const migrations: readonly Omit<PostgresMigration, 'number'>[] = [
  { title: 'event store', sql: `${tables}${notifyWaiting}${eventStoreFunctions}` },
  { title: 'subscriptions', sql: subscriptions },
  { title: 'read models', sql: readModels },
  { title: 'sagas', sql: sagaTables(types) },
  { title: 'traces', sql: traceTables(types) },
  { title: 'repeats of ids', sql: appendEventsFunction },
  { title: 'causes of dead letters', sql: deadLetterCause(types) },
];

/**
 * All migrations of a schema, to review them or to run them with another tool.
 *
 * @example
 * import { postgresMigrations } from 'millrace/engines/postgres';
 *
 * for (const { number, title, sql } of postgresMigrations('millrace')) console.log(number, title, sql);
 */
export function postgresMigrations(schema: string): readonly PostgresMigration[] {
  return numberMigrations(migrations, schema);
}

/**
 * Runs the pending migrations under a lock: concurrent processes run each of them once.
 *
 * @example
 * import pg from 'pg';
 * import { migratePostgres } from 'millrace/engines/postgres';
 *
 * const client = new pg.Client('postgres://localhost/shop');
 * await client.connect();
 * const applied = await migratePostgres(client, 'millrace');
 */
export async function migratePostgres(
  client: ClientBase,
  schema: string,
): Promise<readonly PostgresMigration[]> {
  return runMigrations(client, schema, postgresMigrations(schema));
}
