// The tables of the outbox. A message is written once as a wide row, and a narrow row holds its state. A view joins
// both under the names of the outbox document.

/** SQL that converts a column of milliseconds to an ISO 8601 string. */
export const isoTime = (column: string): string =>
  `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`;

export const sqliteOutboxJobs = `
   alter table outbox_ready add column jobs text;
   alter table outbox_sent add column jobs text;
   alter table outbox_dead add column jobs text;
`;

/** Attempts of messages that failed at least once, as JSON. */
export const sqliteOutboxAttempts = `
   create table outbox_attempts (
     id integer primary key autoincrement,
     seq integer not null,
     attempt text not null
   ) strict;
   create index outbox_attempts_by_message on outbox_attempts (seq, id);
   create trigger outbox_message_removed after delete on outbox_messages
     begin delete from outbox_attempts where seq = old.seq; end;
`;

const rowsView = (deadStatus: string, columns = ''): string =>
  `create view outbox_rows as
     select m.*, coalesce(r.attempts, s.attempts, d.attempts, 0) as attempts,
       case when s.seq is not null then 'SENT'
         ${deadStatus}
         when r.token <> 0 and r.available_at_ms > cast(unixepoch('subsec') * 1000 as integer) then 'CLAIMED'
         when r.attempts > 0 then 'FAILED'
         else 'PENDING' end as status,
       coalesce(r.due_at_ms, m.due_at_ms) as next_due_at_ms, r.locked_at_ms, r.locked_by,
       coalesce(s.sent_at_ms, d.died_at_ms, r.updated_at_ms, m.created_at_ms) as updated_at_ms,
       s.sent_at_ms, coalesce(r.last_error, d.last_error, s.last_error) as last_error${columns}
     from outbox_messages m
     left join outbox_ready r on r.seq = m.seq
     left join outbox_sent s on s.seq = m.seq
     left join outbox_dead d on d.seq = m.seq;`;

export const sqliteOutboxTables = `
   create table outbox_messages (
     seq integer primary key autoincrement,
     id text not null unique,
     source_stream_id text not null,
     source_event_id text not null,
     integration_type text not null,
     event_type text not null,
     payload text not null,
     headers text,
     tenant_id text,
     user_id text,
     correlation_id text,
     ordering_key text,
     due_at_ms integer not null,
     max_attempts integer not null default 10,
     lane integer not null,
     order_hash integer,
     created_at_ms integer not null
   ) strict;
   create unique index ux_outbox_source
     on outbox_messages (source_stream_id, source_event_id, integration_type);
   -- Not yet sent or dead-lettered. available_at_ms: the due time, or the time at which the lease expires.
   create table outbox_ready (
     seq integer primary key,
     lane integer not null,
     order_hash integer,
     available_at_ms integer not null,
     due_at_ms integer not null,
     attempts integer not null default 0,
     starts integer not null default 0,
     token integer not null default 0,
     locked_at_ms integer,
     locked_by text,
     updated_at_ms integer not null,
     last_error text
   ) strict;
   create index outbox_ready_by_lane on outbox_ready (lane, available_at_ms);
   create index outbox_ready_by_time on outbox_ready (available_at_ms);
   create index outbox_ready_by_order on outbox_ready (order_hash, seq) where order_hash is not null;
   create table outbox_sent (
     seq integer primary key,
     attempts integer not null,
     sent_at_ms integer not null,
     last_error text
   ) strict;
   create index outbox_sent_by_time on outbox_sent (sent_at_ms);
   create table outbox_dead (
     seq integer primary key,
     attempts integer not null,
     died_at_ms integer not null,
     last_error text
   ) strict;
   create table outbox_paused (
     integration_type text primary key,
     paused_at_ms integer not null,
     paused_by text not null
   ) strict, without rowid;
   create table outbox_tokens (token integer not null) strict;
   insert into outbox_tokens (token) values (0);
   ${rowsView(`when d.seq is not null then 'DEAD'`)}
   create view integration_outbox as
     select id, source_stream_id, source_event_id, integration_type, event_type, payload, headers,
       tenant_id, user_id, correlation_id, ${isoTime('next_due_at_ms')} as due_at, attempts,
       max_attempts, status, ${isoTime('locked_at_ms')} as locked_at, locked_by,
       ${isoTime('created_at_ms')} as created_at, ${isoTime('updated_at_ms')} as updated_at,
       ${isoTime('sent_at_ms')} as sent_at, last_error
     from outbox_rows;
`;

/** The number of sent messages, kept by triggers: counting millions of rows takes longer than a metrics scrape may. */
export const sqliteOutboxTotals = `
   create table outbox_totals (sent integer not null) strict;
   insert into outbox_totals (sent) select count(*) from outbox_sent;
   create trigger outbox_sent_added after insert on outbox_sent
     begin update outbox_totals set sent = sent + 1; end;
   create trigger outbox_sent_removed after delete on outbox_sent
     begin update outbox_totals set sent = sent - 1; end;
`;

/** discarded: who ended the message and why, as JSON. */
export const sqliteOutboxDiscarded = `
   alter table outbox_dead add column discarded text;
   drop view outbox_rows;
   ${rowsView(`when d.discarded is not null then 'DISCARDED' when d.seq is not null then 'DEAD'`, ', d.discarded')}
`;
