// The tables of read models.

export const sqliteReadModelTables = `
   create table read_models (id integer primary key, name text not null unique) strict;
   -- A removed document keeps its row, with null, as a fence against older events.
   create table read_documents (
     model integer not null,
     tenant text not null,
     id text not null,
     stream text not null,
     revision integer not null,
     document text,
     entries text not null,
     primary key (model, tenant, id)
   ) strict;
   create table read_indexes (
     model integer not null,
     tenant text not null,
     name text not null,
     value text not null,
     id text not null,
     primary key (model, tenant, name, value)
   ) strict, without rowid;
   -- Without the set 'all', which is read from the documents.
   create table read_sets (
     model integer not null,
     tenant text not null,
     name text not null,
     id text not null,
     primary key (model, tenant, name, id)
   ) strict, without rowid;
   create table read_ranges (
     model integer not null,
     tenant text not null,
     name text not null,
     score real not null,
     id text not null,
     primary key (model, tenant, name, score, id)
   ) strict, without rowid;
   -- Counts writes; a cached list is valid for one generation.
   create table read_generations (
     model integer not null,
     tenant text not null,
     generation integer not null,
     primary key (model, tenant)
   ) strict, without rowid;
   create table read_lists (
     model integer not null,
     tenant text not null,
     hash text not null,
     generation integer not null,
     ids text not null,
     expires_at_ms integer not null,
     primary key (model, tenant, hash)
   ) strict, without rowid;
   -- The versions of a model, and which of them serves queries.
   create table read_versions (
     family text not null,
     version integer not null,
     projection text not null,
     status text not null,
     active integer not null default 0,
     target integer,
     changed_at_ms integer not null,
     primary key (family, version)
   ) strict, without rowid;
   create unique index read_versions_active on read_versions (family) where active = 1;
`;
