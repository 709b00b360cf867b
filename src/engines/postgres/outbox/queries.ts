// The statements of the outbox ledger; `{schema}` becomes the quoted schema name.

import type { OutboxStatus } from '../../../outbox/outbox-message.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';
import { ms } from './functions.ts';

/** $1: rows as JSON; $2, $3: lock class and channel. Returns the new messages. */
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
  select r.source_stream_id, r.source_event_id, r.integration_type, r.event_type, r.payload, r.headers,
    r.tenant_id, r.user_id, r.correlation_id, r.ordering_key,
    coalesce(to_timestamp(r.due_at_ms / 1000), clock_timestamp()), r.max_attempts, r.lane,
    r.order_hash, clock_timestamp()
  from input r order by r.ord
  on conflict (source_stream_id, source_event_id, integration_type) do nothing
  returning seq, id, source_stream_id, source_event_id, integration_type, lane, order_hash, due_at
), ordered as (
  select seq, lane, order_hash, due_at,
    order_hash is not null and (
      row_number() over (partition by order_hash order by seq) > 1
      or exists (select from {schema}.ready x where x.order_hash = a.order_hash)
      or exists (select from {schema}.retry x where x.order_hash = a.order_hash)
      or exists (select from {schema}.queued x where x.order_hash = a.order_hash)) as is_queued
  from added a
), to_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from ordered
  where not is_queued and due_at <= clock_timestamp()
), to_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from ordered
  where not is_queued and not due_at <= clock_timestamp()
), to_queued as (
  insert into {schema}.queued (order_hash, seq, lane, due_at)
  select order_hash, seq, lane, due_at from ordered where is_queued
), notified as materialized (
  select {schema}.notify_waiting($2::integer, $3::text) where exists (select from added)
)
select a.id::text, a.source_stream_id, a.source_event_id, a.integration_type
from added a left join notified on true`;

/** $1: sources of duplicates, as JSON. */
export const findSourcesSql = `
select m.id::text, m.source_stream_id, m.source_event_id, m.integration_type
from json_to_recordset($1::json) as r(source_stream_id text, source_event_id text, integration_type text)
join {schema}.messages m using (source_stream_id, source_event_id, integration_type)`;

export const settleSql =
  'select o_seq, o_token, o_lane from {schema}.settle_claims($1, $2, $3, $4, $5)';

/** `settleSql`, which also stores attempts. $6, $7, $8: seq, token and JSON of each attempt. */
export const settleWithAttemptsSql = `
with settled as materialized (
  ${settleSql}
), attempt as (
  select * from unnest($6::bigint[], $7::bigint[], $8::text[]) as a(seq, token, attempt)
  where not exists (
    select from settled s where s.o_seq = a.seq and s.o_token = a.token and s.o_lane is null)
), added as (
  insert into {schema}.attempts (seq, attempt) select seq, attempt from attempt
), removed as (
  -- The new attempt is not visible to this statement.
  delete from {schema}.attempts x using attempt a where x.seq = a.seq and ${outboxLimits.attemptsKept} <= 1 + (
    select count(*) from {schema}.attempts n where n.seq = x.seq and n.number > x.number)
)
select o_seq, o_token, o_lane from settled`;

/** $1: the id of a message. */
export const attemptsSql = `
select a.attempt from {schema}.messages m join {schema}.attempts a on a.seq = m.seq
where m.id = $1 order by a.number`;

export const claimSql = 'select * from {schema}.claim_due($1, $2, $3, $4, $5, $6)';

export const renewSql = 'select * from {schema}.renew_claims($1, $2, $3, $4, $5)';

export const extendSql = 'select * from {schema}.extend_claims($1, $2, $3)';

/**
 * $1: limit. Moves due messages to `ready`, and queued messages whose predecessor was removed. Returns the number of
 * moved messages.
 */
export const promoteSql = `
with due as (
  delete from {schema}.retry where ctid = any (array(
    select ctid from {schema}.retry where due_at <= clock_timestamp()
    order by due_at limit $1 for update skip locked))
  returning seq, lane, order_hash, attempts, starts, due_at, last_error, jobs
), due_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
  select seq, lane, order_hash, attempts, starts, due_at, last_error, jobs from due
  returning 1
), recursive_keys as materialized (
  with recursive keys as (
    (select order_hash from {schema}.queued order by order_hash limit 1)
    union all
    select (select q.order_hash from {schema}.queued q where q.order_hash > k.order_hash
            order by q.order_hash limit 1)
    from keys k where k.order_hash is not null
  )
  select k.order_hash,
    (select q.seq from {schema}.queued q where q.order_hash = k.order_hash order by q.seq limit 1) as seq
  from keys k
  where k.order_hash is not null
    and not exists (select from {schema}.ready x where x.order_hash = k.order_hash)
    and not exists (select from {schema}.retry x where x.order_hash = k.order_hash)
  limit $1
), heads as (
  delete from {schema}.queued q using recursive_keys k
  where q.order_hash = k.order_hash and q.seq = k.seq
  returning q.seq, q.lane, q.order_hash, q.due_at
), heads_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from heads where due_at <= clock_timestamp()
  returning 1
), heads_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from heads where not due_at <= clock_timestamp()
)
select (select count(*) from due_ready) + (select count(*) from heads_ready)`;

const columns = `o.id::text, o.source_stream_id, o.source_event_id, o.integration_type, o.event_type,
  m.payload, m.headers, o.tenant_id, o.user_id, o.correlation_id, m.ordering_key, ${ms('o.due_at')},
  o.attempts, o.max_attempts, ${ms('o.created_at')}, o.last_error, ${ms('o.locked_at')}, o.status, o.locked_by,
  ${ms('o.updated_at')}, ${ms('o.sent_at')}, m.seq, coalesce(
    (select x.jobs from {schema}.sent x where x.seq = m.seq),
    (select x.jobs from {schema}.ready x where x.seq = m.seq),
    (select x.jobs from {schema}.retry x where x.seq = m.seq),
    (select x.jobs from {schema}.dead x where x.seq = m.seq))::text,
  (select x.attempt from {schema}.attempts x where x.seq = m.seq order by x.number desc limit 1),
  (select x.discarded from {schema}.dead x where x.seq = m.seq)`;

const unsettled = `select seq from {schema}.ready union all select seq from {schema}.retry
  union all select seq from {schema}.queued`;

/**
 * Most messages are sent; unsent ones are selected by their small tables instead of filtering all messages. A comparison
 * with the computed status is left out where the table decides: the planner expects few matches and would sort them all.
 */
const ofStatus: Readonly<Record<OutboxStatus, string>> = {
  PENDING: `m.seq in (${unsettled}) and o.status = $2`,
  FAILED: `m.seq in (${unsettled}) and o.status = $2`,
  CLAIMED: 'm.seq in (select seq from {schema}.ready) and o.status = $2',
  DEAD: 'm.seq in (select seq from {schema}.dead where discarded is null) and $2::text is not null',
  DISCARDED:
    'm.seq in (select seq from {schema}.dead where discarded is not null) and $2::text is not null',
  SENT: 'm.seq in (select seq from {schema}.sent) and $2::text is not null',
};

/**
 * $1: ids; $2: status; $3: integration type; $4: tenant; $5: since; $6: after this id; $7: limit. `octet_length` is stored
 * with a payload; `length` would read and decompress the payloads of a whole page, also if only one fits.
 */
export function listSql(status: OutboxStatus | undefined, oldestFirst: boolean): string {
  const [order, after] = oldestFirst ? ['seq', '>'] : ['seq desc', '<'];
  return `
select ${columns}
from (select p.seq, sum(p.chars) over (order by p.${order}) - p.chars as chars_before
from (select m.seq, octet_length(m.payload) + coalesce(octet_length(m.headers), 0) as chars
from {schema}.messages m join {schema}.integration_outbox o on o.id = m.id
where ${status === undefined ? '$2::text is null' : ofStatus[status]}
  and ($1::uuid[] is null or m.id = any ($1))
  and ($3::text is null or m.integration_type = $3)
  and ($4::text is null or m.tenant_id = $4)
  and ($5::float8 is null or
    (case when o.status in ('DEAD', 'DISCARDED') then o.updated_at else m.created_at end) >= to_timestamp($5 / 1000))
  and ($6::uuid is null or m.seq ${after} (select a.seq from {schema}.messages a where a.id = $6))
order by m.${order} limit $7) p) page
join {schema}.messages m on m.seq = page.seq join {schema}.integration_outbox o on o.id = m.id
where page.chars_before < greatest($8::bigint, 1) order by m.${order}`;
}

/** $1: streams and events as JSON; $2: limit. Payloads are not read: those of 1,000 messages would fill the memory. */
export const bySourceSql = `
select ${columns.replace('m.payload, m.headers', `'{}'::text, null`)}
from json_to_recordset($1::json) as r(source_stream_id text, source_event_id text)
join {schema}.messages m using (source_stream_id, source_event_id)
join {schema}.integration_outbox o on o.id = m.id
order by m.seq limit $2`;

/** $1: sources as JSON; $2: the payload that replaces the erased one. */
export const eraseSql = `
with old as materialized (
  select m.seq from json_to_recordset($1::json) as r(source_stream_id text, source_event_id text)
  join {schema}.messages m using (source_stream_id, source_event_id)
), ${['ready', 'retry', 'sent', 'dead']
  .map(
    (state) =>
      `in_${state} as (update {schema}.${state} s set last_error = null from old where s.seq = old.seq)`,
  )
  .join(
    ', ',
  )}, attempts as (delete from {schema}.attempts where seq = any (array(select seq from old)))
update {schema}.messages m set payload = $2, headers = null from old where m.seq = old.seq`;

/** Up to this number of messages the count is exact; above it, SENT is an estimate. */
const countedMax = 100_000;

/** The total, and the small counts of all other statuses: SENT is the difference. */
export const countsSql = `
select 'all', case when few.n <= ${countedMax} then few.n else greatest(few.n, c.reltuples::bigint) end
  from (select count(*) as n from (select 1 from {schema}.messages limit ${countedMax + 1}) m) few
  join pg_class c on c.oid = '{schema}.messages'::regclass
union all select case when discarded is null then 'DEAD' else 'DISCARDED' end, count(*)
  from {schema}.dead group by 1
union all select 'PENDING', count(*) from {schema}.queued
union all select case when lease_until > now() then 'CLAIMED' when attempts > 0 then 'FAILED' else 'PENDING' end,
  count(*) from {schema}.ready group by 1
union all select case when attempts > 0 then 'FAILED' else 'PENDING' end, count(*)
  from {schema}.retry group by 1`;

/** $1: ids; $2: integration type; $3: tenant; $4: since; $5: limit; $6, $7: lock class and channel. */
export const replaySql = `
with chosen as (
  select d.seq, m.lane, m.order_hash from {schema}.dead d join {schema}.messages m on m.seq = d.seq
  where d.discarded is null and ($1::uuid[] is null or m.id = any ($1))
    and ($2::text is null or m.integration_type = $2)
    and ($3::text is null or m.tenant_id = $3)
    and ($4::float8 is null or d.died_at >= to_timestamp($4 / 1000))
  order by d.seq limit $5 for update of d skip locked
), revived as (
  delete from {schema}.dead d using chosen c where d.seq = c.seq
  returning d.seq, c.lane, c.order_hash, d.last_error, d.jobs
), to_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
  select seq, lane, order_hash, 0, 0, clock_timestamp(), last_error, jobs from revived
), notified as materialized (
  select {schema}.notify_waiting($6, $7) where exists (select from revived)
)
select count(*) from revived left join notified on true`;

const chosen = `wanted as materialized (
  select seq, id from {schema}.messages where id = any ($1::uuid[])
)`;

const waits = "x.seq = w.seq and x.due_at > clock_timestamp() and x.due_at < 'infinity'";

/** $1: ids; $2, $3: lock class and channel. Returns the ids of the changed messages. */
export const retryNowSql = `
with ${chosen}, due as (
  update {schema}.retry x set due_at = clock_timestamp() from wanted w where ${waits} returning x.seq
), due_after_another as (
  update {schema}.queued x set due_at = clock_timestamp() from wanted w where ${waits} returning x.seq
), notified as materialized (
  select {schema}.notify_waiting($2, $3) where exists (select from due)
)
select w.id::text from wanted w left join notified on true
where w.seq in (select seq from due union all select seq from due_after_another)`;

/**
 * $1: ids; $2, $3: lock class and channel; $4: who and why, as JSON. Returns the ids of the changed messages. A row that is
 * claimed concurrently is compared again. A later claim promotes the next message of the key.
 */
export const discardSql = `
with ${chosen}, unclaimed as (
  delete from {schema}.ready x using wanted w where x.seq = w.seq and x.lease_until <= clock_timestamp()
  returning x.seq, x.attempts, x.last_error, x.jobs
), waiting as (
  delete from {schema}.retry x using wanted w where x.seq = w.seq
  returning x.seq, x.attempts, x.last_error, x.jobs
), unstarted as (
  delete from {schema}.queued x using wanted w where x.seq = w.seq returning x.seq
), ended as (
  insert into {schema}.dead (seq, attempts, died_at, last_error, jobs, discarded)
  select seq, attempts, clock_timestamp(), last_error, jobs, $4 from unclaimed
  union all select seq, attempts, clock_timestamp(), last_error, jobs, $4 from waiting
  union all select seq, 0, clock_timestamp(), null, null, $4 from unstarted
  returning seq
), dead as (
  update {schema}.dead x set discarded = $4, died_at = clock_timestamp() from wanted w
  where x.seq = w.seq and x.discarded is null returning x.seq
), notified as materialized (
  select {schema}.notify_waiting($2, $3) where exists (select from ended)
)
select w.id::text from wanted w left join notified on true
where w.seq in (select seq from ended union all select seq from dead)`;

/** $1: sent before; $2: limit. */
export const purgeSql = `
with old as (
  delete from {schema}.sent where ctid = any (array(
    select ctid from {schema}.sent where sent_at < to_timestamp($1::float8 / 1000)
    order by sent_at limit $2 for update skip locked))
  returning seq
), attempts as (delete from {schema}.attempts where seq = any (array(select seq from old))
), purged as (delete from {schema}.messages m using old where m.seq = old.seq returning 1)
select count(*) from purged`;

/** $1: sent before; $2: limit. */
export const sentFirstSql = `
select ${columns}
from (select seq, sent_at from {schema}.sent where sent_at < to_timestamp($1::float8 / 1000)
      order by sent_at limit $2) s
  join {schema}.messages m on m.seq = s.seq join {schema}.integration_outbox o on o.id = m.id
order by s.sent_at, s.seq`;

/** $1: ids of sent messages. */
export const forgetSql = `
with old as materialized (
  select m.seq from {schema}.messages m where m.id = any ($1::uuid[])
), unsent as (delete from {schema}.sent s using old where s.seq = old.seq
), attempts as (delete from {schema}.attempts where seq = any (array(select seq from old)))
delete from {schema}.messages m using old where m.seq = old.seq`;

export const pauseSql = `
insert into {schema}.paused_destinations (integration_type, paused_by) values ($1, $2)
on conflict do nothing returning 1`;

export const resumeSql = `select {schema}.resume_destination($1, $2, $3)`;

/** $1, $2: seq and token of claims; $3: their destinations, each once. */
export const parkSql = `
with paused as materialized (
  -- This lock never waits; a concurrent resume waits for it and then sees the parked messages.
  select integration_type from {schema}.paused_destinations
  where integration_type = any ($3::text[]) for key share
), parked as (
  delete from {schema}.ready r using unnest($1::bigint[], $2::bigint[]) as o(seq, token)
  where r.seq = o.seq and r.token = o.token
  returning r.seq, r.lane, r.order_hash, r.attempts, r.starts, r.last_error, r.jobs
)
insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
select p.seq, p.lane, p.order_hash, p.attempts, p.starts - 1,
  case when m.integration_type in (select integration_type from paused) then 'infinity'
    else clock_timestamp() end,
  p.last_error, p.jobs
from parked p join {schema}.messages m on m.seq = p.seq
returning 1`;

export const pausedSql = `
select integration_type, ${ms('paused_at')}, paused_by
from {schema}.paused_destinations order by integration_type`;
