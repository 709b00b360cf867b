// Stream mode in the database. A message of such a destination is written once, with its lane; a lane has
// one owner, told from earlier ones by its epoch, and a cursor below which everything is settled. Only what
// failed, and what waits behind that, has a row of its own.

import { exchangeLanesFunction, settleLanesFunction } from './postgres-outbox-streams-sql.ts';

const tables = `
create table {schema}.stream_destinations (
  integration_type varchar(120) primary key,
  first_lane integer not null,
  lanes integer not null,
  declared_at timestamptz not null default now()
);

-- Never deleted: what a cursor has gone past stays sent, also when its destination has left the mode.
create table {schema}.stream_lanes (
  id integer primary key,
  integration_type varchar(120) not null,
  cursor bigint not null default 0,
  epoch bigint not null default 0,
  owner varchar(120),
  lease_until timestamptz not null default '-infinity',
  -- The batch that is out: its number, up to where, since when, and how often it was given out without
  -- an end.
  batch bigint not null default 0,
  out_to bigint not null default 0,
  out_at timestamptz,
  starts integer not null default 0
) with (fillfactor = 40, autovacuum_vacuum_threshold = 200);

create table {schema}.stream_relays (
  integration_type varchar(120) not null,
  worker_id varchar(120) not null,
  seen_until timestamptz not null,
  primary key (integration_type, worker_id)
);

-- One row for each batch: when the messages in it were sent.
create table {schema}.stream_batches (
  lane integer not null,
  first_seq bigint not null,
  last_seq bigint not null,
  sent_at timestamptz not null,
  primary key (lane, last_seq)
);
create index stream_batches_by_time on {schema}.stream_batches (lane, sent_at);

-- Below the cursor, but not done: failed, due later, or behind such a one of its key (due_at is null).
create table {schema}.stream_parked (
  seq bigint primary key,
  lane integer not null,
  order_hash bigint,
  attempts integer not null,
  starts integer not null,
  due_at timestamptz,
  last_error text,
  updated_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02);
create index stream_parked_by_due on {schema}.stream_parked (lane, due_at) where due_at is not null;
create index stream_parked_by_order on {schema}.stream_parked (order_hash, seq)
  where order_hash is not null;

-- Those that were parked before they were sent.
create table {schema}.stream_sent (
  seq bigint primary key,
  attempts integer not null,
  sent_at timestamptz not null,
  last_error text
);

alter table {schema}.messages add column stream_lane integer;
create index messages_by_stream_lane on {schema}.messages (stream_lane, seq)
  where stream_lane is not null;
`;

const view = `
create or replace view {schema}.integration_outbox as
select m.id, m.source_stream_id, m.source_event_id, m.integration_type, m.event_type,
  {schema}.as_jsonb(m.payload) as payload,
  {schema}.as_jsonb(m.headers) as headers,
  m.tenant_id, m.user_id, m.correlation_id,
  coalesce(r.due_at, nullif(w.due_at, 'infinity'), p.due_at, m.due_at) as due_at,
  coalesce(r.attempts, w.attempts, p.attempts, s.attempts, t.attempts, d.attempts, 0) as attempts,
  m.max_attempts,
  (case
    when s.seq is not null then 'SENT'
    when d.seq is not null then 'DEAD'
    when r.lease_until > now() then 'CLAIMED'
    when coalesce(r.attempts, w.attempts, p.attempts, 0) > 0 then 'FAILED'
    when r.seq is not null or w.seq is not null or p.seq is not null then 'PENDING'
    when m.seq <= l.cursor then 'SENT'
    when m.seq <= l.out_to and l.lease_until > now() then 'CLAIMED'
    else 'PENDING'
  end)::varchar(20) as status,
  case when r.token <> 0 then r.locked_at
    when m.seq > l.cursor and m.seq <= l.out_to then l.out_at end as locked_at,
  case when r.token <> 0 then r.locked_by
    when m.seq > l.cursor and m.seq <= l.out_to then l.owner end as locked_by,
  m.created_at,
  coalesce(s.sent_at, t.sent_at, d.died_at, r.locked_at, w.updated_at, p.updated_at, b.sent_at,
    m.created_at) as updated_at,
  coalesce(s.sent_at, t.sent_at, b.sent_at) as sent_at,
  coalesce(r.last_error, w.last_error, p.last_error, d.last_error, s.last_error, t.last_error)
    as last_error
from {schema}.messages m
left join {schema}.ready r on r.seq = m.seq
left join {schema}.retry w on w.seq = m.seq
left join {schema}.sent s on s.seq = m.seq
left join {schema}.dead d on d.seq = m.seq
left join {schema}.stream_lanes l on l.id = m.stream_lane
left join {schema}.stream_parked p on m.stream_lane is not null and p.seq = m.seq
left join {schema}.stream_sent t on m.stream_lane is not null and t.seq = m.seq
left join lateral (
  select x.sent_at from {schema}.stream_batches x
  where x.lane = m.stream_lane and x.last_seq >= m.seq and m.seq <= l.cursor
    and d.seq is null and p.seq is null and r.seq is null and w.seq is null
  order by x.last_seq limit 1) b on true;
`;

/** Whoever enqueues, and who changes the mode. */
const enqueueFunctions = `
-- Told before numbers are taken: relays stay below them until this transaction has ended. Only those who
-- enqueue for a stream hold relays back, by a lock that is shared with nobody who waits.
create function {schema}.stream_intent(p_class integer, p_types text[]) returns void
language plpgsql volatile as $$
declare
  v_setting constant text := 'millrace.streaming_' || p_class;
  v_now bigint;
begin
  -- An old snapshot does not see that its destination has left the mode: the lock fails then.
  if current_setting('transaction_isolation') <> 'read committed' then
    perform 1 from {schema}.stream_destinations where integration_type = any (p_types) for key share;
  end if;
  if coalesce(current_setting(v_setting, true), '') = '' then
    select case when q.is_called then q.last_value else 0 end into v_now from {schema}.messages_seq_seq q;
    perform pg_advisory_xact_lock_shared(p_class, ((v_now + 2147483648) % 4294967296 - 2147483648)::integer);
    perform set_config(v_setting, 'locked', true);
  end if;
end $$;

create function {schema}.stream_declare(p_type text, p_lanes integer) returns text
language plpgsql volatile set lock_timeout = '5s' as $$
declare
  v_first integer;
  v_lanes integer;
begin
  for turn in 1..2 loop
    select lanes into v_lanes from {schema}.stream_destinations where integration_type = p_type;
    if found then
      return case when v_lanes = p_lanes then 'there' else 'otherwise' end;
    end if;
    if exists (select from {schema}.messages m join (
        select seq from {schema}.ready union all select seq from {schema}.retry
        union all select seq from {schema}.behind) w on w.seq = m.seq
      where m.integration_type = p_type) then
      return 'waiting';
    end if;
    -- Everybody who has enqueued has ended when we have it, and nobody begins before we have.
    if turn = 1 then lock table {schema}.messages in share row exclusive mode; end if;
  end loop;
  select coalesce(max(id), 0) + 1 into v_first from {schema}.stream_lanes;
  -- Above all that there is: a message of the other mode that is replayed is below the cursor.
  insert into {schema}.stream_lanes (id, integration_type, cursor)
    select i, p_type, case when q.is_called then q.last_value else 0 end from {schema}.messages_seq_seq q,
      generate_series(v_first, v_first + p_lanes - 1) i;
  insert into {schema}.stream_destinations (integration_type, first_lane, lanes)
    values (p_type, v_first, p_lanes);
  return 'done';
exception when lock_not_available then
  return 'busy';
end $$;

create function {schema}.stream_retire(p_type text) returns text
language plpgsql volatile set lock_timeout = '5s' as $$
declare
  d record;
begin
  for turn in 1..2 loop
    select first_lane, first_lane + lanes - 1 as last_lane into d
      from {schema}.stream_destinations where integration_type = p_type;
    if not found then return 'absent'; end if;
    if exists (select from {schema}.stream_lanes l where l.id between d.first_lane and d.last_lane and (
        exists (select from {schema}.messages m where m.stream_lane = l.id and m.seq > l.cursor)
        or exists (select from {schema}.stream_parked p where p.lane = l.id))) then
      return 'waiting';
    end if;
    if turn = 1 then lock table {schema}.messages in share row exclusive mode; end if;
  end loop;
  delete from {schema}.stream_destinations where integration_type = p_type;
  update {schema}.stream_lanes set epoch = epoch + 1, owner = null, lease_until = '-infinity'
    where id between d.first_lane and d.last_lane;
  return 'done';
exception when lock_not_available then
  return 'busy';
end $$;
`;

/** Who owns which lanes. */
const ownerFunctions = `
-- Gives back, says that this relay is there (or, without types, that it has left), and takes free lanes up
-- to its share.
create function {schema}.stream_acquire(p_worker text, p_types text[], p_lease_ms integer,
  p_given integer[], p_given_epochs bigint[])
returns table (o_lane integer, o_type text, o_epoch bigint, o_share integer)
language plpgsql volatile as $$
declare
  v_until timestamptz := clock_timestamp() + p_lease_ms * interval '1 millisecond';
  d record;
  v_share integer;
  v_mine integer;
begin
  update {schema}.stream_lanes l
    set owner = null, lease_until = '-infinity', out_to = 0, out_at = null, starts = 0
    from unnest(p_given, p_given_epochs) g(id, epoch)
    where l.id = g.id and l.epoch = g.epoch and l.owner = p_worker;
  delete from {schema}.stream_relays
    where (worker_id = p_worker and integration_type <> all (p_types))
      or seen_until < clock_timestamp() - interval '1 day';
  insert into {schema}.stream_relays (integration_type, worker_id, seen_until)
    select t, p_worker, v_until from unnest(p_types) t order by t
    on conflict (integration_type, worker_id) do update set seen_until = excluded.seen_until;
  for d in select * from {schema}.stream_destinations where integration_type = any (p_types)
      order by integration_type loop
    update {schema}.stream_lanes set lease_until = v_until
      where id between d.first_lane and d.first_lane + d.lanes - 1 and owner = p_worker;
    get diagnostics v_mine = row_count;
    select ceil(d.lanes::numeric / greatest(1, count(*))) into v_share from {schema}.stream_relays
      where integration_type = d.integration_type and seen_until > clock_timestamp();
    if v_mine < v_share then
      update {schema}.stream_lanes set owner = p_worker, epoch = epoch + 1, lease_until = v_until
        where id in (select x.id from {schema}.stream_lanes x
          where x.id between d.first_lane and d.first_lane + d.lanes - 1
            and x.lease_until <= clock_timestamp()
          order by x.id limit v_share - v_mine for update skip locked);
    end if;
    return query select l.id, l.integration_type::text, l.epoch, v_share from {schema}.stream_lanes l
      where l.id between d.first_lane and d.first_lane + d.lanes - 1 and l.owner = p_worker
      order by l.id;
  end loop;
end $$;
`;

/** One step of the outbox's schema. */
export const outboxStreamsStep: string = [
  tables,
  view,
  enqueueFunctions,
  ownerFunctions,
  settleLanesFunction,
  exchangeLanesFunction,
].join('\n');
