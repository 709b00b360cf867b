// The schema of the outbox. The wide row of a message is written once. Claims and outcomes change a narrow row in one
// of five tables. The relation `integration_outbox` of the outbox document is a view over all tables.

import type { ClientBase } from 'pg';
import { MillraceError } from '../../../foundation/error.ts';
import {
  notifyWaiting,
  numberMigrations,
  quoteName,
  runMigrations,
  type PostgresMigration,
} from '../connection/schema.ts';
import { claimFunctions, extendFunction, outboxFunctions } from './functions.ts';

const relation = (deadStatus: string): string =>
  `view {schema}.integration_outbox as
select m.id, m.source_stream_id, m.source_event_id, m.integration_type, m.event_type,
  {schema}.as_jsonb(m.payload) as payload,
  {schema}.as_jsonb(m.headers) as headers,
  m.tenant_id, m.user_id, m.correlation_id,
  coalesce(r.due_at, nullif(w.due_at, 'infinity'), m.due_at) as due_at,
  coalesce(r.attempts, w.attempts, s.attempts, d.attempts, 0) as attempts,
  m.max_attempts,
  (case
    when s.seq is not null then 'SENT'
    ${deadStatus}
    when r.lease_until > now() then 'CLAIMED'
    when coalesce(r.attempts, w.attempts, 0) > 0 then 'FAILED'
    else 'PENDING'
  end)::varchar(20) as status,
  case when r.token <> 0 then r.locked_at end as locked_at,
  case when r.token <> 0 then r.locked_by end as locked_by,
  m.created_at,
  coalesce(s.sent_at, d.died_at, r.locked_at, w.updated_at, m.created_at) as updated_at,
  s.sent_at,
  coalesce(r.last_error, w.last_error, d.last_error, s.last_error) as last_error
from {schema}.messages m
left join {schema}.ready r on r.seq = m.seq
left join {schema}.retry w on w.seq = m.seq
left join {schema}.sent s on s.seq = m.seq
left join {schema}.dead d on d.seq = m.seq;`;

const tables = `
create table {schema}.messages (
  seq bigint generated always as identity primary key,
  id uuid not null default gen_random_uuid(),
  source_stream_id varchar(200) not null,
  source_event_id varchar(100) not null,
  integration_type varchar(120) not null,
  event_type varchar(120) not null,
  -- JSON stored as text: only this adapter reads it, and jsonb rejects some strings that JSON allows.
  payload text not null,
  headers text,
  tenant_id varchar(60),
  user_id varchar(60),
  correlation_id varchar(120),
  ordering_key varchar(200),
  due_at timestamptz not null default now(),
  max_attempts integer not null default 10,
  lane smallint not null,
  order_hash bigint,
  created_at timestamptz not null default now()
) with (fillfactor = 100, autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_scale_factor = 0.05);
create unique index ux_outbox_source
  on {schema}.messages (source_stream_id, source_event_id, integration_type);
create unique index ux_outbox_id on {schema}.messages (id);

-- Due or claimed messages. A claim changes no indexed column, so its update is a HOT update.
-- jobs: a list of JobEntry, here and in the tables below.
create table {schema}.ready (
  seq bigint primary key,
  lane smallint not null,
  order_hash bigint,
  attempts integer not null,
  starts integer not null,
  token bigint not null default 0,
  lease_until timestamptz not null default '-infinity',
  locked_at timestamptz,
  locked_by varchar(120),
  due_at timestamptz not null,
  last_error text,
  jobs jsonb
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index ready_by_lane on {schema}.ready (lane, seq);
create index ready_by_order on {schema}.ready (order_hash) where order_hash is not null;

-- Messages due later, which claims never scan. Due at infinity: the destination is paused.
create table {schema}.retry (
  seq bigint primary key,
  lane smallint not null,
  order_hash bigint,
  attempts integer not null,
  starts integer not null,
  due_at timestamptz not null,
  last_error text,
  updated_at timestamptz not null default now(),
  jobs jsonb
) with (autovacuum_vacuum_scale_factor = 0.02);
create index retry_by_due on {schema}.retry (due_at);
create index retry_by_order on {schema}.retry (order_hash) where order_hash is not null;

-- Messages queued after another one with the same destination and ordering key.
create table {schema}.queued (
  order_hash bigint not null,
  seq bigint not null,
  lane smallint not null,
  due_at timestamptz not null,
  primary key (order_hash, seq)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index queued_by_seq on {schema}.queued (seq);

create table {schema}.sent (
  seq bigint primary key,
  attempts integer not null,
  sent_at timestamptz not null,
  last_error text,
  jobs jsonb
) with (autovacuum_vacuum_scale_factor = 0.05);
create index sent_by_time on {schema}.sent (sent_at);

create table {schema}.dead (
  seq bigint primary key,
  attempts integer not null,
  died_at timestamptz not null,
  last_error text,
  jobs jsonb
);

create table {schema}.paused_destinations (
  integration_type varchar(120) primary key,
  paused_at timestamptz not null default now(),
  paused_by varchar(120) not null
);

create function {schema}.as_jsonb(p_text text) returns jsonb language plpgsql immutable as $$
begin
  return p_text::jsonb;
exception when others then
  -- JSON with U+0000 or a lone surrogate is returned as a string.
  return to_jsonb(p_text);
end $$;

create ${relation(`when d.seq is not null then 'DEAD'`)}
`;

/** Attempts of messages that failed at least once, as JSON text. */
const attempts = `
create table {schema}.attempts (
  seq bigint not null,
  number bigint generated always as identity,
  attempt text not null,
  primary key (seq, number)
);
`;

/** discarded: who ended the message and why, as JSON text. */
const discarded = `
alter table {schema}.dead add column discarded text;
create or replace ${relation(`when d.discarded is not null then 'DISCARDED' when d.seq is not null then 'DEAD'`)}
`;

const migrations = [
  { title: 'outbox', sql: `${tables}${notifyWaiting}${outboxFunctions}` },
  { title: 'extended claims', sql: extendFunction },
  { title: 'claims without outcomes', sql: claimFunctions },
  { title: 'attempts', sql: attempts },
  { title: 'discarded messages', sql: discarded },
];

/**
 * All migrations of the outbox schema, to review them or to run them with another tool.
 *
 * @example
 * import { postgresOutboxMigrations } from 'millrace/engines/postgres';
 *
 * for (const { number, title, sql } of postgresOutboxMigrations()) console.log(number, title, sql);
 */
export function postgresOutboxMigrations(schema = 'core_outbox'): readonly PostgresMigration[] {
  return numberMigrations(migrations, schema);
}

/**
 * Runs the pending migrations under a lock: concurrent processes run each of them once.
 *
 * @example
 * import pg from 'pg';
 * import { migratePostgresOutbox } from 'millrace/engines/postgres';
 *
 * const client = new pg.Client('postgres://localhost/shop');
 * await client.connect();
 * await migratePostgresOutbox(client);
 */
export async function migratePostgresOutbox(
  client: ClientBase,
  schema = 'core_outbox',
): Promise<readonly PostgresMigration[]> {
  await checkForeignTable(client, schema);
  return runMigrations(client, schema, postgresOutboxMigrations(schema));
}

/** The table of the outbox document has no ordering keys and no claim tokens, so its rows must be enqueued again. */
async function checkForeignTable(client: ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query(
    `select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = 'integration_outbox' and c.relkind in ('r', 'p')`,
    [schema],
  );
  if (rows.length === 0) return;
  throw new MillraceError(
    'CONFIG_INVALID',
    `${schema}.integration_outbox is a table that another program created. Stop its processes, run "alter schema ${quoteName(schema)} rename to ${quoteName(`${schema}_before`)}", start again, and enqueue its unsent rows: docs/outbox.md, "An existing outbox table".`,
    { details: { field: 'outbox', schema } },
  );
}
