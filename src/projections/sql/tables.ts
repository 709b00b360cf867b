// The tables of read models, for the migrations of every SQL engine (see subscriptions/sql/tables.ts).

import type { SqlTypes } from '../../subscriptions/sql/tables.ts';

/** Without the tables `read_models` and `read_documents`, which differ between engines. */
export function readModelTables({
  at,
  key,
  bigint,
  double,
  flag,
  byKey,
  updated,
}: SqlTypes): string {
  return `
create table ${at}read_indexes (
  model integer not null,
  tenant ${key} not null,
  name ${key} not null,
  value ${key} not null,
  id ${key} not null,
  primary key (model, tenant, name, value)
)${byKey};

-- Without the set 'all', which is read from read_documents.
create table ${at}read_sets (
  model integer not null,
  tenant ${key} not null,
  name ${key} not null,
  id ${key} not null,
  primary key (model, tenant, name, id)
)${byKey};

create table ${at}read_ranges (
  model integer not null,
  tenant ${key} not null,
  name ${key} not null,
  score ${double} not null,
  id ${key} not null,
  primary key (model, tenant, name, score, id)
)${byKey};

-- Counts the writes; a cached list is valid while its generation is current.
create table ${at}read_generations (
  model integer not null,
  tenant ${key} not null,
  generation ${bigint} not null,
  primary key (model, tenant)
)${updated};

create table ${at}read_lists (
  model integer not null,
  tenant ${key} not null,
  hash ${key} not null,
  generation ${bigint} not null,
  ids text not null,
  expires_at_ms ${bigint} not null,
  primary key (model, tenant, hash)
)${byKey};

-- The versions of each read model, and the active one.
create table ${at}read_versions (
  family ${key} not null,
  version integer not null,
  projection ${key} not null,
  status ${key} not null,
  active ${flag} not null default 0,
  target ${bigint},
  changed_at_ms ${bigint} not null,
  primary key (family, version)
)${byKey};
create unique index read_versions_active on ${at}read_versions (family) where active = 1;
`;
}
