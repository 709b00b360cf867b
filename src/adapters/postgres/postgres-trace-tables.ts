// Which events a flow has, in the events' own schema.

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

-- Grows at its end only: how old ones are found.
create index trace_events_by_time on {schema}.trace_events (recorded_at_ms);
`;
