// The statements of the outbox ledger, each one round trip; `{schema}` becomes the schema's quoted name.

import type { OutboxStatus } from '../../outbox/outbox-message.ts';

/** $1: rows as JSON; $2, $3: lock class and channel. Gives back those that were new. */
export const enqueueSql = `
with input as (
  select * from json_to_recordset($1::json) as r(ord integer, source_stream_id text,
    source_event_id text, integration_type text, event_type text, payload text, headers text,
    tenant_id text, user_id text, correlation_id text, ordering_key text, due_at_ms float8,
    max_attempts integer, lane smallint, order_hash bigint)
), added as (
  insert into {schema}.messages (source_stream_id, source_event_id, integration_type, event_type,
    payload, headers, tenant_id, user_id, correlation_id, ordering_key, due_at, max_attempts, lane,
    order_hash, created_at)
  select source_stream_id, source_event_id, integration_type, event_type, payload, headers,
    tenant_id, user_id, correlation_id, ordering_key,
    coalesce(to_timestamp(due_at_ms / 1000), clock_timestamp()), max_attempts, lane, order_hash,
    clock_timestamp()
  from input order by ord
  on conflict (source_stream_id, source_event_id, integration_type) do nothing
  returning seq, id, source_stream_id, source_event_id, integration_type, lane, order_hash, due_at
), placed as (
  select seq, lane, order_hash, due_at,
    order_hash is not null and (
      row_number() over (partition by order_hash order by seq) > 1
      or exists (select from {schema}.ready x where x.order_hash = a.order_hash)
      or exists (select from {schema}.retry x where x.order_hash = a.order_hash)
      or exists (select from {schema}.behind x where x.order_hash = a.order_hash)) as is_behind
  from added a
), to_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from placed
  where not is_behind and due_at <= clock_timestamp()
), to_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from placed
  where not is_behind and not due_at <= clock_timestamp()
), to_behind as (
  insert into {schema}.behind (order_hash, seq, lane, due_at)
  select order_hash, seq, lane, due_at from placed where is_behind
), told as materialized (
  select {schema}.wake_dispatchers($2::integer, $3::text) where exists (select from added)
)
select a.id::text, a.source_stream_id, a.source_event_id, a.integration_type
from added a left join told on true`;

/** $1: those that were there already, as JSON. */
export const findSourcesSql = `
select m.id::text, m.source_stream_id, m.source_event_id, m.integration_type
from json_to_recordset($1::json) as r(source_stream_id text, source_event_id text, integration_type text)
join {schema}.messages m using (source_stream_id, source_event_id, integration_type)`;

/** $1…$5: seq, token, kind, error and due time of each outcome. */
const settling = `
outcome as materialized (
  select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::float8[])
    as o(seq, token, kind, error, due_at_ms)
), freed as (
  update {schema}.ready r
  set token = 0, lease_until = '-infinity', locked_at = null, locked_by = null, starts = r.starts - 1
  from outcome o
  where o.kind = 'released' and o.due_at_ms is null and r.seq = o.seq and r.token = o.token
  returning r.seq, o.token
), place as materialized (
  -- One by one, by the key: a join may be planned as a scan of the whole queue.
  select o.*, x.ctid from outcome o cross join lateral (
    select r.ctid from {schema}.ready r where r.seq = o.seq and r.token = o.token limit 1) x
  where not (o.kind = 'released' and o.due_at_ms is null)
), gone as (
  delete from {schema}.ready r using place o
  where r.ctid = any (array(select ctid from place))
    -- Asked again of a row that somebody claimed meanwhile: its token is another one.
    and r.seq = o.seq and r.token = o.token
  returning r.seq, o.token, r.lane, r.order_hash, r.attempts, r.starts, r.last_error, o.kind, o.error,
    o.due_at_ms
), to_sent as (
  insert into {schema}.sent (seq, attempts, sent_at, last_error)
  select seq, attempts, clock_timestamp(), last_error from gone where kind = 'sent'
), to_dead as (
  insert into {schema}.dead (seq, attempts, died_at, last_error)
  select seq, attempts + 1, clock_timestamp(), error from gone where kind = 'dead'
), to_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error)
  select seq, lane, order_hash, attempts + (kind = 'failed')::int, starts - (kind = 'released')::int,
    to_timestamp(due_at_ms / 1000),
    coalesce(error, last_error)
  from gone where kind in ('failed', 'released')
), next as (
  delete from {schema}.behind b using (
    select g.order_hash, (
      select n.seq from {schema}.behind n where n.order_hash = g.order_hash order by n.seq limit 1
    ) as seq
    from (select distinct order_hash from gone
          where order_hash is not null and kind in ('sent', 'dead')) g
    -- One that was replayed may have run beside it: then whoever ends last calls the next.
    where not exists (select from {schema}.retry x where x.order_hash = g.order_hash)
      -- What this very statement puts off is in none of the tables yet.
      and not exists (select from gone x
        where x.order_hash = g.order_hash and x.kind in ('failed', 'released'))
      and not exists (select from {schema}.ready x
        where x.order_hash = g.order_hash and x.seq not in (select seq from gone))
  ) n
  where b.order_hash = n.order_hash and b.seq = n.seq
  returning b.seq, b.lane, b.order_hash, b.due_at
), next_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where due_at <= clock_timestamp()
), next_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where not due_at <= clock_timestamp()
)`;

const settledRows = `select seq, token from gone union all select seq, token from freed`;

const settleBody = `with ${settling} ${settledRows}`;

/**
 * $6: lanes, the next one first; $7: their floors; $8: limit; $9: of each lane before any lane gets more;
 * $10: worker; $11: lease in milliseconds. Rows are changed by their place on disk: a join by the key
 * may be planned as a scan of the whole queue.
 */
const exchangeBody = `
with ${settling}, lanes as materialized (
  select * from unnest($6::smallint[], $7::bigint[]) with ordinality as l(lane, floor, ord) order by ord
), picked as materialized (
  select p.ctid from (
    select r.ctid from lanes l cross join lateral (
      select x.ctid from {schema}.ready x
      where x.lane = l.lane and x.seq >= l.floor and x.lease_until <= clock_timestamp()
        and x.seq <> all ($1)
      order by x.seq limit $9 for update skip locked) r
    union all
    select r.ctid from lanes l cross join lateral (
      select x.ctid from {schema}.ready x
      where x.lane = l.lane and x.seq >= l.floor and x.lease_until <= clock_timestamp()
        and x.seq <> all ($1)
      order by x.seq offset $9 limit $8 for update skip locked) r
  ) p limit $8
), token as materialized (select nextval('{schema}.claim_tokens') as token),
claimed as (
  update {schema}.ready r
  set token = (select token from token), starts = r.starts + 1, locked_by = $10,
    locked_at = clock_timestamp(), lease_until = clock_timestamp() + $11 * interval '1 millisecond'
  where r.ctid = any (array(select ctid from picked))
  returning r.*
)
select 0::smallint as kind, s.seq, s.token, null::smallint as lane, null::integer as attempts,
  null::integer as starts, null::float8 as locked_at, null::float8 as due_at, null::text as last_error,
  null::text as id, null::text as source_stream_id, null::text as source_event_id,
  null::text as integration_type, null::text as event_type, null::text as payload,
  null::text as headers, null::text as tenant_id, null::text as user_id, null::text as correlation_id,
  null::text as ordering_key, null::integer as max_attempts, null::float8 as created_at, false as paused
from (${settledRows}) s
union all
select 1::smallint, c.seq, c.token, c.lane, c.attempts, c.starts, (extract(epoch from c.locked_at) * 1000)::float8,
  (extract(epoch from c.due_at) * 1000)::float8, c.last_error, m.id::text, m.source_stream_id::text, m.source_event_id::text,
  m.integration_type::text, m.event_type::text, m.payload, m.headers, m.tenant_id::text, m.user_id::text, m.correlation_id::text,
  m.ordering_key::text, m.max_attempts, (extract(epoch from m.created_at) * 1000)::float8,
  exists (select from {schema}.paused_destinations p where p.integration_type = m.integration_type)
from claimed c join {schema}.messages m on m.seq = c.seq`;

/**
 * Functions, for the plan: it is made once, and walks the lanes by their index, whatever the statistics say
 * of a queue that was empty a moment ago.
 */
const planned = `set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set plan_cache_mode = force_generic_plan`;

export const outboxFunctions = `
create function {schema}.settle_claims(bigint[], bigint[], text[], text[], float8[])
returns table (settled_seq bigint, settled_token bigint) language plpgsql volatile ${planned} as $$
begin
  return query ${settleBody};
end $$;

create function {schema}.exchange_claims(bigint[], bigint[], text[], text[], float8[], smallint[],
  bigint[], integer, integer, text, integer)
returns table (o_kind smallint, o_seq bigint, o_token bigint, o_lane smallint, o_attempts integer,
  o_starts integer, o_locked_at float8, o_due_at float8, o_last_error text, o_id text, o_stream text,
  o_event text, o_integration_type text, o_event_type text, o_payload text, o_headers text,
  o_tenant text, o_user text, o_correlation text, o_ordering_key text, o_max_attempts integer,
  o_created_at float8, o_paused boolean)
language plpgsql volatile ${planned} as $$
begin
  return query ${exchangeBody};
end $$;
`;

export const settleSql =
  'select settled_seq, settled_token from {schema}.settle_claims($1, $2, $3, $4, $5)';

export const exchangeSql =
  'select * from {schema}.exchange_claims($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)';

/** $1: limit. What has become due, and what waits behind a message that is not there any more. */
export const promoteSql = `
with due as (
  delete from {schema}.retry where ctid = any (array(
    select ctid from {schema}.retry where due_at <= clock_timestamp()
    order by due_at limit $1 for update skip locked))
  returning seq, lane, order_hash, attempts, starts, due_at, last_error
), due_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at, last_error)
  select seq, lane, order_hash, attempts, starts, due_at, last_error from due
  returning 1
), recursive_keys as materialized (
  with recursive keys as (
    (select order_hash from {schema}.behind order by order_hash limit 1)
    union all
    select (select b.order_hash from {schema}.behind b where b.order_hash > k.order_hash
            order by b.order_hash limit 1)
    from keys k where k.order_hash is not null
  )
  select k.order_hash,
    (select b.seq from {schema}.behind b where b.order_hash = k.order_hash order by b.seq limit 1) as seq
  from keys k
  where k.order_hash is not null
    and not exists (select from {schema}.ready x where x.order_hash = k.order_hash)
    and not exists (select from {schema}.retry x where x.order_hash = k.order_hash)
  limit $1
), heads as (
  delete from {schema}.behind b using recursive_keys k
  where b.order_hash = k.order_hash and b.seq = k.seq
  returning b.seq, b.lane, b.order_hash, b.due_at
), heads_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from heads where due_at <= clock_timestamp()
  returning 1
), heads_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from heads where not due_at <= clock_timestamp()
)
select (select count(*) from due_ready) + (select count(*) from heads_ready)`;

/** $1: lanes. The lowest number of each lane that has one. */
export const floorsSql = `
select l.lane, (select r.seq from {schema}.ready r where r.lane = l.lane order by r.seq limit 1)
from unnest($1::smallint[]) l(lane)`;

const columns = `o.id::text, o.source_stream_id, o.source_event_id, o.integration_type, o.event_type,
  m.payload, m.headers, o.tenant_id, o.user_id, o.correlation_id, m.ordering_key,
  extract(epoch from o.due_at) * 1000, o.attempts, o.max_attempts, o.status,
  extract(epoch from o.locked_at) * 1000, o.locked_by, extract(epoch from o.created_at) * 1000,
  extract(epoch from o.updated_at) * 1000, extract(epoch from o.sent_at) * 1000, o.last_error`;

const unsettled = `select seq from {schema}.ready union all select seq from {schema}.retry
  union all select seq from {schema}.behind`;

/** Few are not sent, beside many that are: they are not looked for among those. */
const among: Readonly<Record<OutboxStatus, string>> = {
  PENDING: `m.seq in (${unsettled})`,
  FAILED: `m.seq in (${unsettled})`,
  CLAIMED: 'm.seq in (select seq from {schema}.ready)',
  DEAD: 'm.seq in (select seq from {schema}.dead)',
  SENT: 'm.seq in (select seq from {schema}.sent)',
};

/** $1: ids; $2: status; $3: integration type; $4: tenant; $5: since; $6: behind this id; $7: limit. */
export const listSql = (status: OutboxStatus | undefined): string => `
select ${columns}
from {schema}.messages m join {schema}.integration_outbox o on o.id = m.id
where ${status === undefined ? 'true' : among[status]}
  and ($1::uuid[] is null or m.id = any ($1))
  and ($2::text is null or o.status = $2)
  and ($3::text is null or m.integration_type = $3)
  and ($4::text is null or m.tenant_id = $4)
  and ($5::float8 is null or
    (case o.status when 'DEAD' then o.updated_at else m.created_at end) >= to_timestamp($5 / 1000))
  and ($6::uuid is null or m.seq > (select a.seq from {schema}.messages a where a.id = $6))
order by m.seq limit $7`;

/** $1: streams and events as JSON; $2: limit. */
export const bySourceSql = `
select ${columns}
from json_to_recordset($1::json) as r(source_stream_id text, source_event_id text)
join {schema}.messages m using (source_stream_id, source_event_id)
join {schema}.integration_outbox o on o.id = m.id
order by m.seq limit $2`;

export const countsSql = `
select 'SENT', count(*) from {schema}.sent
union all select 'DEAD', count(*) from {schema}.dead
union all select 'PENDING', count(*) from {schema}.behind
union all select case when lease_until > now() then 'CLAIMED' when attempts > 0 then 'FAILED' else 'PENDING' end,
  count(*) from {schema}.ready group by 1
union all select case when attempts > 0 then 'FAILED' else 'PENDING' end, count(*)
  from {schema}.retry group by 1`;

/** $1: ids; $2: integration type; $3: tenant; $4: since; $5: limit; $6, $7: lock class and channel. */
export const replaySql = `
with chosen as (
  select d.seq, m.lane, m.order_hash from {schema}.dead d join {schema}.messages m on m.seq = d.seq
  where ($1::uuid[] is null or m.id = any ($1))
    and ($2::text is null or m.integration_type = $2)
    and ($3::text is null or m.tenant_id = $3)
    and ($4::float8 is null or d.died_at >= to_timestamp($4 / 1000))
  order by d.seq limit $5 for update of d skip locked
), back as (
  delete from {schema}.dead d using chosen c where d.seq = c.seq
  returning d.seq, c.lane, c.order_hash, d.last_error
), to_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at, last_error)
  select seq, lane, order_hash, 0, 0, clock_timestamp(), last_error from back
  returning 1
), told as materialized (
  select {schema}.wake_dispatchers($6, $7) where exists (select from back)
)
select count(*) from to_ready left join told on true`;

/** $1: sent before; $2: limit. */
export const purgeSql = `
with old as (
  delete from {schema}.sent where ctid = any (array(
    select ctid from {schema}.sent where sent_at < to_timestamp($1::float8 / 1000)
    order by sent_at limit $2 for update skip locked))
  returning seq
), gone as (delete from {schema}.messages m using old where m.seq = old.seq returning 1)
select count(*) from gone`;

export const pauseSql = `
insert into {schema}.paused_destinations (integration_type, paused_by) values ($1, $2)
on conflict do nothing returning 1`;

export const resumeSql = `select {schema}.resume_destination($1, $2, $3)`;

/** $1, $2: seq and token of claims; $3: their destinations, each once. */
export const parkSql = `
with still as materialized (
  -- Waits for nobody; whoever resumes waits for us, and then sees what we have put off.
  select integration_type from {schema}.paused_destinations
  where integration_type = any ($3::text[]) for key share
), gone as (
  delete from {schema}.ready r using unnest($1::bigint[], $2::bigint[]) as o(seq, token)
  where r.seq = o.seq and r.token = o.token
  returning r.seq, r.lane, r.order_hash, r.attempts, r.starts, r.last_error
)
insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error)
select g.seq, g.lane, g.order_hash, g.attempts, g.starts - 1,
  case when m.integration_type in (select integration_type from still) then 'infinity'
    else clock_timestamp() end,
  g.last_error
from gone g join {schema}.messages m on m.seq = g.seq
returning 1`;

export const pausedSql = `
select integration_type, extract(epoch from paused_at) * 1000, paused_by
from {schema}.paused_destinations order by integration_type`;
