// Where sagas are found, in the events' own schema.

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
