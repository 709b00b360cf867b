// The tables of read models, in the schema of the events.

export const readModelTables = `
create table {schema}.read_models (
  id integer generated always as identity primary key,
  name text collate "C" not null unique
);

-- A deleted document leaves its row with a null document, as the fence against older events.
create table {schema}.read_documents (
  model integer not null,
  tenant text collate "C" not null,
  id text collate "C" not null,
  stream text collate "C" not null,
  revision bigint not null,
  document text,
  entries text not null,
  -- The entries before the last write, returned to the writer.
  previous text,
  primary key (model, tenant, id)
) with (fillfactor = 80);

create table {schema}.read_indexes (
  model integer not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  value text collate "C" not null,
  id text collate "C" not null,
  primary key (model, tenant, name, value)
);

-- Without the set 'all', which is read from read_documents.
create table {schema}.read_sets (
  model integer not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  id text collate "C" not null,
  primary key (model, tenant, name, id)
);

create table {schema}.read_ranges (
  model integer not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  score double precision not null,
  id text collate "C" not null,
  primary key (model, tenant, name, score, id)
);

-- Counts the writes; a cached list is valid while its generation is current.
create table {schema}.read_generations (
  model integer not null,
  tenant text collate "C" not null,
  generation bigint not null,
  primary key (model, tenant)
) with (fillfactor = 20); -- Updated constantly: keep the updates in the same page.

create table {schema}.read_lists (
  model integer not null,
  tenant text collate "C" not null,
  hash text collate "C" not null,
  generation bigint not null,
  ids text not null,
  expires_at_ms bigint not null,
  primary key (model, tenant, hash)
);

-- The versions of each read model, and the active one.
create table {schema}.read_versions (
  family text collate "C" not null,
  version integer not null,
  projection text collate "C" not null,
  status text collate "C" not null,
  active smallint not null default 0,
  target bigint,
  changed_at_ms bigint not null,
  primary key (family, version)
);
create unique index read_versions_active on {schema}.read_versions (family) where active = 1;
`;
