// The tables of subscriptions and dead letters, for the migrations of every SQL engine. A change of a table is a new
// migration: existing databases have run these statements.

/** How a dialect writes column types and table options. */
export interface SqlTypes {
  /** The prefix of a table name: its schema. */
  readonly at: string;
  /** Text that is compared byte by byte. */
  readonly key: string;
  readonly bigint: string;
  readonly double: string;
  /** Column type of a flag, 0 or 1. */
  readonly flag: string;
  /** The options of a table that is read by its primary key. */
  readonly byKey: string;
  /** Table options for a table whose rows are updated constantly. */
  readonly updated: string;
  /** The options of any other table. */
  readonly plain: string;
}

/** Name, code, stack and fingerprint of the error of a dead letter, as JSON. */
export const deadLetterCause = ({ at }: Pick<SqlTypes, 'at'>): string =>
  `alter table ${at}dead_letters add column cause text;`;

/** Without the table `subscriptions`, which the engines create in different steps. */
export function subscriptionTables({
  at,
  key,
  bigint,
  flag,
  byKey,
  updated,
  plain,
}: SqlTypes): string {
  return `
create table ${at}subscription_shards (
  subscription ${key} not null,
  shard integer not null,
  position ${bigint},
  owner text not null default '',
  token ${bigint} not null default 0,
  expires_at_ms ${bigint} not null default 0,
  primary key (subscription, shard)
)${updated};

-- Events processed above the checkpoint; the next checkpoint deletes them.
create table ${at}subscription_marks (
  subscription ${key} not null,
  shard integer not null,
  position ${bigint} not null,
  primary key (subscription, shard, position)
)${byKey};

-- Parked streams. Without a due time: until the dead letter is replayed or discarded.
create table ${at}subscription_blocked (
  subscription ${key} not null,
  shard integer not null,
  stream ${key} not null,
  due_at_ms ${bigint},
  primary key (subscription, shard, stream)
)${byKey};
create index subscription_blocked_due on ${at}subscription_blocked (subscription, shard, due_at_ms);

create table ${at}subscription_waiting (
  subscription ${key} not null,
  shard integer not null,
  stream ${key} not null,
  position ${bigint} not null,
  event_id ${key} not null,
  failures ${bigint} not null,
  history text not null,
  primary key (subscription, shard, stream, position)
)${byKey};

create table ${at}subscription_workers (
  subscription ${key} not null,
  worker ${key} not null,
  expires_at_ms ${bigint} not null,
  primary key (subscription, worker)
)${byKey};

create table ${at}dead_letters (
  id ${key} primary key,
  event_id ${key} not null,
  event_type ${key} not null,
  aggregate_id ${key} not null,
  payload text not null,
  error text not null,
  attempts integer not null,
  created_at_ms ${bigint} not null,
  status ${key} not null default 'pending',
  replayed_at_ms ${bigint},
  replayed_by text,
  notes text not null default '',
  handler ${key} not null,
  shard integer not null,
  tenant ${key} not null,
  correlation_id ${key} not null,
  stream ${key} not null,
  revision ${bigint} not null,
  position ${bigint} not null,
  parked ${flag} not null,
  history text not null,
  replay_requested_at_ms ${bigint},
  discarded_at_ms ${bigint},
  discarded_by text,
  discard_reason text,
  unique (event_id, handler)
)${plain};
create index dead_letters_by_status on ${at}dead_letters (status, created_at_ms, id);
create index dead_letters_by_type on ${at}dead_letters (event_type, created_at_ms);
create index dead_letters_by_handler on ${at}dead_letters (handler, status, created_at_ms);

create table ${at}processed_events (
  event_id ${key} not null,
  handler_name ${key} not null,
  token ${bigint} not null,
  leased_until_ms ${bigint} not null,
  processed_at_ms ${bigint},
  expires_at_ms ${bigint} not null,
  primary key (event_id, handler_name)
)${byKey};
create index processed_events_by_expiry on ${at}processed_events (expires_at_ms);
`;
}
