// Where sagas are found, in the events' own file: the third step of the schema.

export const sqliteSagaTables = `
   create table saga_index (
     stream text primary key,
     saga text not null,
     tenant text not null,
     saga_key text not null,
     status text not null,
     revision integer not null,
     updated_at_ms integer not null,
     due_at_ms integer,
     shard integer not null,
     reason text
   ) strict, without rowid;
   create index saga_index_due on saga_index (saga, shard, due_at_ms) where due_at_ms is not null;
   create index saga_index_by_status on saga_index (saga, status, stream);
`;
