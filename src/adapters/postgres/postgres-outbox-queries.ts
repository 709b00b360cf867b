// What operators ask of the ledger and do with it: lists, counts, replay, purge, archive, pause.

import type { OutboxStatus } from '../../outbox/outbox-message.ts';
import { ms } from './postgres-outbox-sql.ts';

const columns = `o.id::text, o.source_stream_id, o.source_event_id, o.integration_type, o.event_type,
  m.payload, m.headers, o.tenant_id, o.user_id, o.correlation_id, m.ordering_key, ${ms('o.due_at')},
  o.attempts, o.max_attempts, ${ms('o.created_at')}, o.last_error, ${ms('o.locked_at')}, o.status, o.locked_by,
  ${ms('o.updated_at')}, ${ms('o.sent_at')}, m.seq, coalesce(
    (select x.jobs from {schema}.sent x where x.seq = m.seq),
    (select x.jobs from {schema}.ready x where x.seq = m.seq),
    (select x.jobs from {schema}.retry x where x.seq = m.seq),
    (select x.jobs from {schema}.dead x where x.seq = m.seq))::text`;

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

/** Up to so many messages are counted one by one; above, SENT is an estimate. */
const countedMax = 100_000;

/** All of them, and those of each status but SENT, which are few: SENT is what is left. */
export const countsSql = `
select 'all', case when few.n <= ${countedMax} then few.n else greatest(few.n, c.reltuples::bigint) end
  from (select count(*) as n from (select 1 from {schema}.messages limit ${countedMax + 1}) m) few
  join pg_class c on c.oid = '{schema}.messages'::regclass
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
  returning d.seq, c.lane, c.order_hash, d.last_error, d.jobs
), to_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
  select seq, lane, order_hash, 0, 0, clock_timestamp(), last_error, jobs from back
), told as materialized (
  select {schema}.wake_dispatchers($6, $7) where exists (select from back)
)
select count(*) from back left join told on true`;

/** $1: sent before; $2: limit. */
export const purgeSql = `
with old as (
  delete from {schema}.sent where ctid = any (array(
    select ctid from {schema}.sent where sent_at < to_timestamp($1::float8 / 1000)
    order by sent_at limit $2 for update skip locked))
  returning seq
), gone as (delete from {schema}.messages m using old where m.seq = old.seq returning 1)
select count(*) from gone`;

/** $1: sent before; $2: limit. */
export const sentFirstSql = `
select ${columns}
from (select seq, sent_at from {schema}.sent where sent_at < to_timestamp($1::float8 / 1000)
      order by sent_at limit $2) s
  join {schema}.messages m on m.seq = s.seq join {schema}.integration_outbox o on o.id = m.id
order by s.sent_at, s.seq`;

/** $1: ids, all of them sent. */
export const forgetSql = `
with old as materialized (
  select m.seq from {schema}.messages m where m.id = any ($1::uuid[])
), unclaimed as (delete from {schema}.sent s using old where s.seq = old.seq)
delete from {schema}.messages m using old where m.seq = old.seq`;

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
  returning r.seq, r.lane, r.order_hash, r.attempts, r.starts, r.last_error, r.jobs
)
insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
select g.seq, g.lane, g.order_hash, g.attempts, g.starts - 1,
  case when m.integration_type in (select integration_type from still) then 'infinity'
    else clock_timestamp() end,
  g.last_error, g.jobs
from gone g join {schema}.messages m on m.seq = g.seq
returning 1`;

export const pausedSql = `
select integration_type, ${ms('paused_at')}, paused_by
from {schema}.paused_destinations order by integration_type`;
