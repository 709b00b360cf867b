// The tables of the bus. The `seq` of a message is its sequence and its position over all subjects. SQLite assigns it
// under the write lock, so it follows the order of commits.

export const sqliteBusTables = `
   -- autoincrement: readers remember ids, so an id is never reused for another subject.
   create table bus_streams (
     id integer primary key autoincrement,
     subject text not null unique,
     length integer not null default 0,
     bytes integer not null default 0
   ) strict;
   create table bus_messages (
     seq integer primary key autoincrement,
     stream_id integer not null,
     stored_at_ms integer not null,
     data blob not null,
     meta text
   ) strict;
   create index bus_messages_by_stream on bus_messages (stream_id, seq);
   create table bus_message_ids (
     stream_id integer not null,
     id text not null,
     seq integer not null,
     expires_at_ms integer not null,
     primary key (stream_id, id)
   ) strict, without rowid;
   create index bus_message_ids_by_time on bus_message_ids (expires_at_ms);
   -- Messages up to the cursor were delivered; those that are not pending were acked.
   create table bus_groups (
     id integer primary key autoincrement,
     name text not null unique,
     filters text not null,
     lease_ms integer not null,
     max_ack_pending integer not null,
     cursor integer not null
   ) strict;
   create table bus_group_streams (
     group_id integer not null,
     stream_id integer not null,
     primary key (group_id, stream_id)
   ) strict, without rowid;
   create index bus_group_streams_by_stream on bus_group_streams (stream_id);
   -- available_at_ms: the time at which the lease or the delay expires.
   create table bus_pending (
     group_id integer not null,
     seq integer not null,
     stream_id integer not null,
     available_at_ms integer not null,
     delivery_count integer not null,
     token integer not null,
     primary key (group_id, seq)
   ) strict, without rowid;
   create index bus_pending_by_time on bus_pending (group_id, available_at_ms);
   create index bus_pending_by_stream on bus_pending (stream_id, group_id, seq);
   create table bus_tokens (token integer not null) strict;
   insert into bus_tokens (token) values (0);
`;
