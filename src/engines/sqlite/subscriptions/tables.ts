// The tables of subscriptions and dead letters.

export const sqliteSubscriptionTables = `
   create table subscriptions (
     name text primary key,
     shards integer not null,
     paused integer not null default 0
   ) strict, without rowid;
   create table subscription_shards (
     subscription text not null,
     shard integer not null,
     position integer,
     owner text not null default '',
     token integer not null default 0,
     expires_at_ms integer not null default 0,
     primary key (subscription, shard)
   ) strict, without rowid;
   -- Processed positions above the checkpoint; the next checkpoint removes them.
   create table subscription_marks (
     subscription text not null,
     shard integer not null,
     position integer not null,
     primary key (subscription, shard, position)
   ) strict, without rowid;
   -- Parked streams. Without due_at_ms: until the dead letter is replayed or discarded.
   create table subscription_blocked (
     subscription text not null,
     shard integer not null,
     stream text not null,
     due_at_ms integer,
     primary key (subscription, shard, stream)
   ) strict, without rowid;
   create index subscription_blocked_due on subscription_blocked (subscription, shard, due_at_ms);
   create table subscription_waiting (
     subscription text not null,
     shard integer not null,
     stream text not null,
     position integer not null,
     event_id text not null,
     failures integer not null,
     history text not null,
     primary key (subscription, shard, stream, position)
   ) strict, without rowid;
   create table subscription_workers (
     subscription text not null,
     worker text not null,
     expires_at_ms integer not null,
     primary key (subscription, worker)
   ) strict, without rowid;
   create table dead_letters (
     id text primary key,
     event_id text not null,
     event_type text not null,
     aggregate_id text not null,
     payload text not null,
     error text not null,
     attempts integer not null,
     created_at_ms integer not null,
     status text not null default 'pending',
     replayed_at_ms integer,
     replayed_by text,
     notes text not null default '',
     handler text not null,
     shard integer not null,
     tenant text not null,
     correlation_id text not null,
     stream text not null,
     revision integer not null,
     position integer not null,
     parked integer not null,
     history text not null,
     replay_requested_at_ms integer,
     discarded_at_ms integer,
     discarded_by text,
     discard_reason text,
     unique (event_id, handler)
   ) strict;
   create index dead_letters_by_status on dead_letters (status, created_at_ms, id);
   create index dead_letters_by_type on dead_letters (event_type, created_at_ms);
   create index dead_letters_by_handler on dead_letters (handler, status, created_at_ms);
   create table processed_events (
     event_id text not null,
     handler_name text not null,
     token integer not null,
     leased_until_ms integer not null,
     processed_at_ms integer,
     expires_at_ms integer not null,
     primary key (event_id, handler_name)
   ) strict, without rowid;
   create index processed_events_by_expiry on processed_events (expires_at_ms);
`;

const isoTime = (column: string): string =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`;

/** The filter of a subscription, to compute its lag; and a view of dead letters with the column names of the event flow document. */
export const sqliteSubscriptionViews = `
   alter table subscriptions add column filter text;
   create view dead_letter_queue as
     select id as _id, event_id as eventId, event_type as eventType, aggregate_id as aggregateId,
       payload, error, attempts, ${isoTime('created_at_ms')} as createdAt, status,
       ${isoTime('replayed_at_ms')} as replayedAt, replayed_by as replayedBy, notes, handler, history
     from dead_letters;
`;
