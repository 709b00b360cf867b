// The database functions of the outbox ledger: settling, claiming and renewing claims, one round trip each.
// A function is planned once and always uses the indexes, even if the statistics still show an empty queue.
// `{schema}` becomes the quoted schema name.

import { jobsKept } from '../../../outbox/outbox-job.ts';

/** The token of a claim is random, because a sequence may reissue its last numbers after a crash of the server. */
const newToken = '1 + floor(random() * 999999999999999)::bigint';

export const ms = (time: string): string => `date_part('epoch', ${time}) * 1000`;

const indexPlans = `set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set plan_cache_mode = force_generic_plan`;

/**
 * Allows only nested loops by key. A concurrent extension of the lease moves a row. A plan that uses the old location
 * would treat the row as one of another owner.
 */
const keyPlans = `${indexPlans} set enable_hashjoin = off set enable_mergejoin = off`;

/** The columns that a claim or a renewal returns for a message (m) and its queue row (c). */
const claimColumns = {
  types: `o_id text, o_stream text, o_event text, o_integration_type text, o_event_type text,
  o_payload text, o_headers text, o_tenant text, o_user text, o_correlation text, o_ordering_key text,
  o_due_at float8, o_attempts integer, o_max_attempts integer, o_created_at float8, o_last_error text,
  o_locked_at float8, o_seq bigint, o_token bigint`,
  values: `m.id::text, m.source_stream_id::text, m.source_event_id::text, m.integration_type::text,
  m.event_type::text, m.payload, m.headers, m.tenant_id::text, m.user_id::text, m.correlation_id::text,
  m.ordering_key::text, ${ms('c.due_at')}, c.attempts, m.max_attempts, ${ms('m.created_at')}, c.last_error,
  ${ms('c.locked_at')}, c.seq, c.token`,
};

/** Completes the job that the owner of the row's token started; a released job leaves no entry. */
const jobsAfter = (kind: string): string => `
  case when (r.jobs -> -1 ->> 2)::bigint is distinct from r.token then r.jobs
    when ${kind} = 'released' then nullif(r.jobs - -1, '[]')
    else jsonb_set(r.jobs, '{-1}', (r.jobs -> -1)
      || jsonb_build_array(floor(${ms('clock_timestamp()')}), ${kind})) end`;

/** The last part of the CTE `next`: moves the rows of `queued` that are selected as `n` to `ready` or `retry`. */
const moveNext = `  where q.order_hash = n.order_hash and q.seq = n.seq
  returning q.seq, q.lane, q.order_hash, q.due_at
), next_ready as (
  insert into {schema}.ready (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where due_at <= clock_timestamp()
), next_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at)
  select seq, lane, order_hash, 0, 0, due_at from next where not due_at <= clock_timestamp()
)`;

/**
 * The first queued message of each key `k`. A replayed message may run concurrently: settling the last of them moves
 * the next message.
 */
const nextOfKey = `select k.order_hash, (
      select n.seq from {schema}.queued n where n.order_hash = k.order_hash order by n.seq limit 1
    ) as seq`;

/**
 * Settles outcomes of any kind. $1…$5: seq, token, kind, error and due time of each outcome; the last two
 * arrays may be shorter. Returns outcomes that changed nothing (stale), and with their lanes the rows that
 * can be claimed again.
 */
const settleAny = `with outcome as materialized (
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
  -- Row by row through the key: a join may be planned as a scan of the whole queue.
  select o.*, x.ctid from outcome o cross join lateral (
    select r.ctid from {schema}.ready r where r.seq = o.seq and r.token = o.token limit 1) x
  where not (o.kind = 'released' and o.due_at_ms is null)
), settled as (
  delete from {schema}.ready r using place o
  where r.ctid = any (array(select ctid from place))
    -- Checked again, because another worker may have claimed the row concurrently with a new token.
    and r.seq = o.seq and r.token = o.token
  returning r.seq, o.token, r.lane, r.order_hash, r.attempts, r.starts, r.last_error, o.kind, o.error,
    o.due_at_ms, ${jobsAfter('o.kind')} as jobs
), to_sent as (
  insert into {schema}.sent (seq, attempts, sent_at, last_error, jobs)
  select seq, attempts, clock_timestamp(), last_error, jobs from settled where kind = 'sent'
), to_dead as (
  insert into {schema}.dead (seq, attempts, died_at, last_error, jobs)
  select seq, attempts + 1, clock_timestamp(), error, jobs from settled where kind = 'dead'
), to_retry as (
  insert into {schema}.retry (seq, lane, order_hash, attempts, starts, due_at, last_error, jobs)
  select seq, lane, order_hash, attempts + (kind = 'failed')::int, starts - (kind = 'released')::int,
    to_timestamp(due_at_ms / 1000),
    coalesce(error, last_error), jobs
  from settled where kind in ('failed', 'released')
), next as (
  delete from {schema}.queued q using (
    ${nextOfKey}
    from (select distinct order_hash from settled
          where order_hash is not null and kind in ('sent', 'dead')) k
    where not exists (select from {schema}.retry x where x.order_hash = k.order_hash)
      -- Rows that this statement inserts into retry are not visible to it.
      and not exists (select from settled x
        where x.order_hash = k.order_hash and x.kind in ('failed', 'released'))
      and not exists (select from {schema}.ready x
        where x.order_hash = k.order_hash and x.seq not in (select seq from settled))
  ) n
${moveNext}
select o.seq, o.token, null::smallint as lane from outcome o
where not exists (select from settled x where x.seq = o.seq and x.token = o.token)
  and not exists (select from freed x where x.seq = o.seq and x.token = o.token)
union all select seq, 0, lane from freed
union all select seq, 0, lane from next`;

/** Settles v_seqs, all sent under the token v_token: by primary key, in the order of the index they move to. */
const settleSent = `with settled as (
  delete from {schema}.ready r where r.seq = any (v_seqs) and r.token = v_token
  returning r.seq, r.order_hash, r.attempts, r.last_error, ${jobsAfter(`'sent'`)} as jobs
), to_sent as (
  insert into {schema}.sent (seq, attempts, sent_at, last_error, jobs)
  select seq, attempts, v_now, last_error, jobs from settled
)
select coalesce(array_agg(seq), '{}'), array_agg(distinct order_hash) filter (where order_hash is not null)
into v_settled, v_keys from settled`;

/** Moves the next message of each key in v_keys, after settleSent. */
const moveNextOfKeys = `with next as (
  delete from {schema}.queued q using (
    ${nextOfKey}
    from unnest(v_keys) k(order_hash)
    where not exists (select from {schema}.retry x where x.order_hash = k.order_hash)
      and not exists (select from {schema}.ready x where x.order_hash = k.order_hash)
  ) n
${moveNext}
select seq, 0::bigint, lane from next`;

/** Up to this number of claims, sent messages are settled claim by claim with settleSent. */
const tokensMax = 8;

const isUnclaimed = 'x.lease_until <= clock_timestamp()';

const unclaimedOfLane = `
  select x.ctid from {schema}.ready x
  where x.lane = l.lane and x.seq >= l.floor and ${isUnclaimed}
  order by x.seq`;

/**
 * Fair between lanes. $1: lanes in the order of their turns; $2: their floors; $3: limit; $4: the share of each
 * lane before any lane gets more.
 */
const pickByLanes = `
lanes as materialized (
  select * from unnest($1::smallint[], $2::bigint[]) with ordinality as l(lane, floor, ord) order by ord
), shares as materialized (
  select l.*, r.ctid from lanes l cross join lateral (${unclaimedOfLane} limit $4 for update skip locked) r limit $3
), lanes_with_more as materialized (
  select lane, floor from shares group by lane, floor, ord having count(*) >= $4 order by ord
), picked as materialized (
  select p.ctid from (
    select ctid from shares
    union all
    select r.ctid from lanes_with_more l cross join lateral (
      ${unclaimedOfLane} offset $4 limit $3 for update skip locked) r
  ) p limit $3
)`;

/** For a short queue: one scan takes everything faster than one scan per lane. */
const pickAll = `
picked as materialized (
  select x.ctid from {schema}.ready x where ${isUnclaimed}
  order by x.lane, x.seq limit $3 for update skip locked
)`;

/** $5: worker; $6: lease in milliseconds. By ctid: a join on the key may be planned as a scan of the queue. */
const claim = (picked: string): string => `with ${picked},
token as materialized (select ${newToken} as token),
claimed as (
  update {schema}.ready r
  set token = (select token from token), starts = r.starts + 1, locked_by = $5,
    locked_at = clock_timestamp(), lease_until = clock_timestamp() + $6 * interval '1 millisecond'
  where r.ctid = any (array(select ctid from picked))
  returning r.*
)
select ${claimColumns.values}, c.lane, c.starts,
  case when (select exists (select from {schema}.paused_destinations)) then exists (
    select from {schema}.paused_destinations p where p.integration_type = m.integration_type) else false end
from claimed c join {schema}.messages m on m.seq = c.seq`;

export const outboxFunctions = `
-- Parameters: see settleAny. A null lane marks a stale outcome; other rows can be claimed again.
create function {schema}.settle_claims(bigint[], bigint[], text[], text[], float8[])
returns table (o_seq bigint, o_token bigint, o_lane smallint) language plpgsql volatile ${indexPlans} as $$
declare
  v_now timestamptz := clock_timestamp();
  v_tokens bigint[];
  v_token bigint;
  v_seqs bigint[];
  v_settled bigint[];
  v_keys bigint[];
begin
  -- Almost always all messages were sent, which needs less work.
  if 'sent' = all ($3) then v_tokens := array(select distinct unnest($2)); end if;
  if v_tokens is null or cardinality(v_tokens) > ${tokensMax} then
    return query ${settleAny};
    return;
  end if;
  foreach v_token in array v_tokens loop
    v_seqs := case when cardinality(v_tokens) = 1 then $1
      else array(select o.seq from unnest($1, $2) o(seq, token) where o.token = v_token) end;
    ${settleSent};
    if cardinality(v_settled) < cardinality(v_seqs) then
      return query select x, v_token, null::smallint from unnest(v_seqs) x where x <> all (v_settled);
    end if;
    if v_keys is not null then return query ${moveNextOfKeys}; end if;
  end loop;
end $$;

-- Makes the messages of a paused destination due again. Two statements: the first waits for transactions that
-- park messages, and only a later snapshot sees what they parked.
create function {schema}.resume_destination(p_type text, p_class integer, p_channel text)
returns boolean language plpgsql volatile as $$
declare
  v_was_paused boolean;
begin
  delete from {schema}.paused_destinations where integration_type = p_type;
  v_was_paused := found;
  update {schema}.retry r set due_at = clock_timestamp() from {schema}.messages m
    where r.due_at = 'infinity' and m.seq = r.seq and m.integration_type = p_type;
  perform {schema}.notify_waiting(p_class, p_channel);
  return v_was_paused;
end $$;
`;

/** Extends leases; returns the claims that are still valid. An older version of the function returned their number. */
export const extendFunction = `
drop function if exists {schema}.extend_claims(bigint[], bigint[], integer);
create function {schema}.extend_claims(bigint[], bigint[], integer)
returns table (o_seq bigint, o_token bigint) language plpgsql volatile ${keyPlans} as $$
begin
  return query update {schema}.ready r set lease_until = clock_timestamp() + $3 * interval '1 millisecond'
  from unnest($1, $2) as c(seq, token) where r.seq = c.seq and r.token = c.token
  returning r.seq, r.token;
end $$;
`;

/**
 * Functions of older versions stay: exchange_claims, and renew_claims with another signature. Their processes may run
 * until the update is complete.
 */
export const claimFunctions = `
-- Parameters: see pickByLanes and claim.
create function {schema}.claim_due(smallint[], bigint[], integer, integer, text, integer)
returns table (${claimColumns.types}, o_lane smallint, o_starts integer, o_paused boolean)
language plpgsql volatile ${indexPlans} as $$
begin
  -- A claim that is lost in a crash is made again, so it need not wait for the disk.
  perform set_config('synchronous_commit', 'off', true);
  if cardinality($1) = 0 then
    return query ${claim(pickAll)};
  else
    return query ${claim(pickByLanes)};
  end if;
end $$;

-- Takes claims over under a new token and records the started job in the row (see JobEntry). Parameters: seq and
-- token per claim; worker; lease in milliseconds; whether the queue belongs to one tenant. A claim of a paused
-- destination is released instead.
create function {schema}.renew_claims(bigint[], bigint[], text, integer, boolean)
returns table (${claimColumns.types}, o_previous_token bigint, o_starts integer, o_paused boolean)
language plpgsql volatile ${keyPlans} as $$
begin
  return query with claim as materialized (
    select c.*, exists (select from {schema}.paused_destinations p where p.integration_type =
      (select m.integration_type from {schema}.messages m where m.seq = c.seq)) as paused
    from unnest($1, $2) as c(seq, previous_token)
  ), token as materialized (select ${newToken} as token, clock_timestamp() as at
  ), freed as (
    update {schema}.ready r
    set token = 0, lease_until = '-infinity', locked_at = null, locked_by = null, starts = r.starts - 1
    from claim c where c.paused and r.seq = c.seq and r.token = c.previous_token
    returning c.previous_token, r.*
  ), renewed as (
    update {schema}.ready r
    set token = t.token, locked_by = $3, locked_at = t.at,
      lease_until = clock_timestamp() + $4 * interval '1 millisecond',
      jobs = case when jsonb_array_length(r.jobs) >= ${jobsKept} then r.jobs - 0
          else coalesce(r.jobs, '[]') end
        || jsonb_build_array(jsonb_build_array(r.attempts + 1, r.token, t.token, $5,
          floor(${ms('r.locked_at')}), floor(${ms('t.at')})))
    from claim c, token t where not c.paused and r.seq = c.seq and r.token = c.previous_token
    returning c.previous_token, r.*
  )
  select ${claimColumns.values}, c.previous_token, c.starts, c.token = 0
  from (select * from freed union all select * from renewed) c
  join {schema}.messages m on m.seq = c.seq;
end $$;
`;
