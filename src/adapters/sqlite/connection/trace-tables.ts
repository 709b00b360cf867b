// Which events a flow has, in the events' own file.

export const sqliteTraceTables = `
   create table trace_events (
     correlation_id text not null,
     position integer not null,
     tenant text not null,
     stream text not null,
     revision integer not null,
     recorded_at_ms integer not null,
     primary key (correlation_id, position)
   ) strict, without rowid;
   -- Grows at its end only: how old ones are found.
   create index trace_events_by_time on trace_events (recorded_at_ms);
`;
