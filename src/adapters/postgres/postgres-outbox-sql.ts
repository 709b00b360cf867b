// The statements of the outbox ledger, each one round trip; `{schema}` becomes the schema's quoted name.

/**
 * Never given out before, also when the server has crashed and forgotten the last ones: a sequence would
 * give those out again.
 */
export const newToken = '1 + floor(random() * 999999999999999)::bigint';

export const ms = (time: string): string => `date_part('epoch', ${time}) * 1000`;

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
  select r.source_stream_id, r.source_event_id, r.integration_type, r.event_type, r.payload, r.headers,
    r.tenant_id, r.user_id, r.correlation_id, r.ordering_key,
    coalesce(to_timestamp(r.due_at_ms / 1000), clock_timestamp()), r.max_attempts, r.lane,
    r.order_hash, clock_timestamp()
  from input r order by r.ord
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

/** Ends the job that the worker with the row's token has begun; one that was put back has done nothing. */
const jobsAfter = (kind: string): string => `
  case when (r.jobs -> -1 ->> 2)::bigint is distinct from r.token then r.jobs
    when ${kind} = 'released' then nullif(r.jobs - -1, '[]')
    else jsonb_set(r.jobs, '{-1}', (r.jobs -> -1)
      || jsonb_build_array(floor(${ms('clock_timestamp()')}), ${kind})) end`;

/** Of the CTE `next`: those of `behind` that are found as `n` come to where they can be claimed. */
const nextMoved = `  where b.order_hash = n.order_hash and b.seq = n.seq
  returning b.seq, b.lane, b.order_hash, b.due_at
), next_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where due_at <= clock_timestamp()
), next_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where not due_at <= clock_timestamp()
)`;

/** $1…$5: seq, token, kind, error and due time of each outcome; where the rest has none, the last two end early. */
const settling = `
outcome as materialized (
  select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::float8[])
    as o(seq, token, kind, error, due_at_ms)
), freed as (
  update {schema}.ready r
  set token = 0, lease_until = '-infinity', locked_at = null, locked_by = null, starts = r.starts - 1,
    jobs = ${jobsAfter(`'released'`)}
  from outcome o
  where o.kind = 'released' and o.due_at_ms is null and r.seq = o.seq and r.token = o.token
  returning r.seq, o.token, r.lane
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
    o.due_at_ms, ${jobsAfter('o.kind')} as jobs
), to_sent as (
  insert into {schema}.sent (seq, attempts, sent_at, last_error, jobs)
  select seq, attempts, clock_timestamp(), last_error, jobs from gone where kind = 'sent'
), to_dead as (
  insert into {schema}.dead (seq, attempts, died_at, last_error, jobs)
  select seq, attempts + 1, clock_timestamp(), error, jobs from gone where kind = 'dead'
), to_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
  select seq, lane, order_hash, attempts + (kind = 'failed')::int, starts - (kind = 'released')::int,
    to_timestamp(due_at_ms / 1000),
    coalesce(error, last_error), jobs
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
${nextMoved}`;

/**
 * Told are outcomes that changed nothing, of which there are hardly ever any, and, with their lanes, what
 * may be claimed again.
 */
const toldRows = `
  select o.seq, o.token, null::smallint as lane from outcome o
  where not exists (select from gone x where x.seq = o.seq and x.token = o.token)
    and not exists (select from freed x where x.seq = o.seq and x.token = o.token)
  union all select seq, 0, lane from freed
  union all select seq, 0, lane from next`;

const settleBody = `with ${settling} ${toldRows}`;

/**
 * What was sent under one token, v_token, and is v_seqs: in their order, which is about that of the index
 * that they come into. Found by nothing but the keys themselves: there is no other way to plan it.
 */
const settleSentBody = `
with gone as (
  delete from {schema}.ready r where r.seq = any (v_seqs) and r.token = v_token
  returning r.seq, r.order_hash, r.attempts, r.last_error, ${jobsAfter(`'sent'`)} as jobs
), to_sent as (
  insert into {schema}.sent (seq, attempts, sent_at, last_error, jobs)
  select seq, attempts, v_now, last_error, jobs from gone
)
select coalesce(array_agg(seq), '{}'), array_agg(distinct order_hash) filter (where order_hash is not null)
into v_gone, v_keys from gone`;

/** Behind what was deleted in the statement before, under the keys v_keys. */
const nextBody = `
with next as (
  delete from {schema}.behind b using (
    select k.order_hash, (
      select n.seq from {schema}.behind n where n.order_hash = k.order_hash order by n.seq limit 1
    ) as seq
    from unnest(v_keys) k(order_hash)
    -- One that was replayed may have run beside it: then whoever ends last calls the next.
    where not exists (select from {schema}.retry x where x.order_hash = k.order_hash)
      and not exists (select from {schema}.ready x where x.order_hash = k.order_hash)
  ) n
${nextMoved}
select seq, 0::bigint, lane from next`;

/** So many claims' outcomes are settled claim by claim; those of more are looked for one by one. */
const tokensMax = 8;

/** What nobody holds. */
const isFree = 'x.lease_until <= clock_timestamp()';

/** Of a lane, from its floor on, in order. */
const ofLane = `
  select x.ctid from {schema}.ready x
  where x.lane = l.lane and x.seq >= l.floor and ${isFree}
  order by x.seq`;

/** $6: lanes, the next one first; $7: their floors; $9: of each lane before any lane gets more. */
const fairly = `
lanes as materialized (
  select * from unnest($6::smallint[], $7::bigint[]) with ordinality as l(lane, floor, ord) order by ord
), shares as materialized (
  select l.*, r.ctid from lanes l cross join lateral (${ofLane} limit $9 for update skip locked) r limit $8
), lanes_with_more as materialized (
  select lane, floor from shares group by lane, floor, ord having count(*) >= $9 order by ord
), picked as materialized (
  select p.ctid from (
    select ctid from shares
    union all
    select r.ctid from lanes_with_more l cross join lateral (
      ${ofLane} offset $9 limit $8 for update skip locked) r
  ) p limit $8
)`;

/** Where there is little, all of it is taken, and looking into each lane would take longer. */
const atOnce = `
picked as materialized (
  select x.ctid from {schema}.ready x where ${isFree}
  order by x.lane, x.seq limit $8 for update skip locked
)`;

/**
 * $8: limit; $10: worker; $11: lease in milliseconds. Rows are changed by their place on disk: a join by
 * the key may be planned as a scan of the whole queue.
 */
const claiming = `
token as materialized (select ${newToken} as token),
claimed as (
  update {schema}.ready r
  set token = (select token from token), starts = r.starts + 1, locked_by = $10,
    locked_at = clock_timestamp(), lease_until = clock_timestamp() + $11 * interval '1 millisecond'
  where r.ctid = any (array(select ctid from picked))
  returning r.*
)`;

const claimedRows = `
select m.id::text, m.source_stream_id::text, m.source_event_id::text, m.integration_type::text,
  m.event_type::text, m.payload, m.headers, m.tenant_id::text, m.user_id::text, m.correlation_id::text,
  m.ordering_key::text, ${ms('c.due_at')}, c.attempts, m.max_attempts, ${ms('m.created_at')}, c.last_error,
  ${ms('c.locked_at')}, c.seq, c.token, c.lane, c.starts,
  case when (select exists (select from {schema}.paused_destinations)) then exists (
    select from {schema}.paused_destinations p where p.integration_type = m.integration_type) else false end
from claimed c join {schema}.messages m on m.seq = c.seq`;

const claimBody = (picked: string): string => `with ${picked}, ${claiming} ${claimedRows}`;

/**
 * Functions, for the plan: it is made once, and walks the lanes by their index, whatever the statistics say
 * of a queue that was empty a moment ago.
 */
export const planned = `set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set plan_cache_mode = force_generic_plan`;

export const outboxFunctions = `
create function {schema}.settle_claims(bigint[], bigint[], text[], text[], float8[])
returns table (told_seq bigint, told_token bigint, told_lane smallint) language plpgsql volatile ${planned} as $$
declare
  v_now timestamptz := clock_timestamp();
  v_tokens bigint[];
  v_token bigint;
  v_seqs bigint[];
  v_gone bigint[];
  v_keys bigint[];
begin
  -- Hardly ever is there anything else: it needs no more than to be moved.
  if 'sent' = all ($3) then v_tokens := array(select distinct unnest($2)); end if;
  if v_tokens is null or cardinality(v_tokens) > ${tokensMax} then
    return query ${settleBody};
    return;
  end if;
  foreach v_token in array v_tokens loop
    v_seqs := case when cardinality(v_tokens) = 1 then $1
      else array(select o.seq from unnest($1, $2) o(seq, token) where o.token = v_token) end;
    ${settleSentBody};
    if cardinality(v_gone) < cardinality(v_seqs) then
      return query select x, v_token, null::smallint from unnest(v_seqs) x where x <> all (v_gone);
    end if;
    if v_keys is not null then return query ${nextBody}; end if;
  end loop;
end $$;

create function {schema}.exchange_claims(bigint[], bigint[], text[], text[], float8[], smallint[],
  bigint[], integer, integer, text, integer)
returns table (o_id text, o_stream text, o_event text, o_integration_type text, o_event_type text,
  o_payload text, o_headers text, o_tenant text, o_user text, o_correlation text, o_ordering_key text,
  o_due_at float8, o_attempts integer, o_max_attempts integer, o_created_at float8, o_last_error text,
  o_locked_at float8, o_seq bigint, o_token bigint, o_lane smallint, o_starts integer, o_paused boolean)
language plpgsql volatile ${planned} as $$
begin
  if cardinality($1) > 0 then
    -- Those without an id are of the batch before.
    return query select null::text, null::text, null::text, null::text, null::text, null::text, null::text,
      null::text, null::text, null::text, null::text, null::float8, null::integer, null::integer,
      null::float8, null::text, null::float8, s.told_seq, s.told_token, s.told_lane, null::integer, false
    from {schema}.settle_claims($1, $2, $3, $4, $5) s;
  else
    -- A claim that a crash of the server forgets is made again: it need not wait for the disk.
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if cardinality($6) = 0 then
    return query ${claimBody(atOnce)};
  else
    return query ${claimBody(fairly)};
  end if;
end $$;
`;

export const settleSql =
  'select told_seq, told_token, told_lane from {schema}.settle_claims($1, $2, $3, $4, $5)';

export const exchangeSql =
  'select * from {schema}.exchange_claims($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)';

/** $1: limit. What has become due, and what waits behind a message that is not there any more. */
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
