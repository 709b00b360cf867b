// The tables of subscriptions, sagas and traces, in the schema of the events.

export const subscriptionTables = `
create table {schema}.subscriptions (
  name text collate "C" primary key,
  shards integer not null,
  paused smallint not null default 0,
  -- JSON of the filter, from which any process can compute the lag.
  filter text
);

create table {schema}.subscription_shards (
  subscription text collate "C" not null,
  shard integer not null,
  position bigint,
  owner text not null default '',
  token bigint not null default 0,
  expires_at_ms bigint not null default 0,
  primary key (subscription, shard)
) with (fillfactor = 20); -- Updated constantly: keep the updates in the same page.

-- Events processed above the checkpoint; the next checkpoint deletes them.
create table {schema}.subscription_marks (
  subscription text collate "C" not null,
  shard integer not null,
  position bigint not null,
  primary key (subscription, shard, position)
);

-- Blocked aggregates. Without a due time: blocked until a dead letter is replayed or discarded.
create table {schema}.subscription_blocked (
  subscription text collate "C" not null,
  shard integer not null,
  stream text collate "C" not null,
  due_at_ms bigint,
  primary key (subscription, shard, stream)
);
create index subscription_blocked_due on {schema}.subscription_blocked (subscription, shard, due_at_ms);

create table {schema}.subscription_waiting (
  subscription text collate "C" not null,
  shard integer not null,
  stream text collate "C" not null,
  position bigint not null,
  event_id text collate "C" not null,
  failures bigint not null,
  history text not null,
  primary key (subscription, shard, stream, position)
);

create table {schema}.subscription_workers (
  subscription text collate "C" not null,
  worker text collate "C" not null,
  expires_at_ms bigint not null,
  primary key (subscription, worker)
);

create table {schema}.dead_letters (
  id text collate "C" primary key,
  event_id text collate "C" not null,
  event_type text collate "C" not null,
  aggregate_id text collate "C" not null,
  payload text not null,
  error text not null,
  attempts integer not null,
  created_at_ms bigint not null,
  status text collate "C" not null default 'pending',
  replayed_at_ms bigint,
  replayed_by text,
  notes text not null default '',
  handler text collate "C" not null,
  shard integer not null,
  tenant text collate "C" not null,
  correlation_id text collate "C" not null,
  stream text collate "C" not null,
  revision bigint not null,
  position bigint not null,
  parked smallint not null,
  history text not null,
  replay_requested_at_ms bigint,
  discarded_at_ms bigint,
  discarded_by text,
  discard_reason text,
  unique (event_id, handler)
);
create index dead_letters_by_status on {schema}.dead_letters (status, created_at_ms, id);
create index dead_letters_by_type on {schema}.dead_letters (event_type, created_at_ms);
create index dead_letters_by_handler on {schema}.dead_letters (handler, status, created_at_ms);

create table {schema}.processed_events (
  event_id text collate "C" not null,
  handler_name text collate "C" not null,
  token bigint not null,
  leased_until_ms bigint not null,
  processed_at_ms bigint,
  expires_at_ms bigint not null,
  primary key (event_id, handler_name)
);
create index processed_events_by_expiry on {schema}.processed_events (expires_at_ms);

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

export const sagaTables = `
create table {schema}.saga_index (
  stream text collate "C" primary key,
  saga text collate "C" not null,
  tenant text collate "C" not null,
  saga_key text collate "C" not null,
  status text collate "C" not null,
  revision bigint not null,
  updated_at_ms bigint not null,
  due_at_ms bigint,
  shard integer not null,
  reason text
);

create index saga_index_due on {schema}.saga_index (saga, shard, due_at_ms) where due_at_ms is not null;
create index saga_index_by_status on {schema}.saga_index (saga, status, stream);
`;

export const traceTables = `
create table {schema}.trace_events (
  correlation_id text collate "C" not null,
  position bigint not null,
  tenant text collate "C" not null,
  stream text collate "C" not null,
  revision bigint not null,
  recorded_at_ms bigint not null,
  primary key (correlation_id, position)
);

-- For deleting old entries; inserts only append to it.
create index trace_events_by_time on {schema}.trace_events (recorded_at_ms);
`;
