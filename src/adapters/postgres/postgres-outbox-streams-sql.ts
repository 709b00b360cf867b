// How batches of lanes are settled and given out: functions in the database, each call one round trip.

import { planned } from './postgres-outbox-sql.ts';

export const settleLanesFunction = `
create function {schema}.stream_settle(p_lane integer[], p_epoch bigint[], p_number bigint[],
  p_up_to bigint[], c_lane integer[], c_seq bigint[], c_kind text[], c_error text[], c_due float8[])
returns integer[] language plpgsql volatile ${planned} as $$
declare
  v_mine integer[];
  v_ok integer[];
begin
  -- Locked until the end: whoever takes over waits, and then finds all of it, or we find that he has.
  -- One whose answer was lost on the way is told again: it is settled, and not a second time.
  select coalesce(array_agg(x.id), '{}'), coalesce(array_agg(x.id) filter (where x.is_out), '{}')
  into v_mine, v_ok from (
    select l.id, l.batch = t.number and l.starts > 0 as is_out from {schema}.stream_lanes l
    join unnest(p_lane, p_epoch, p_number) t(lane, epoch, number)
      on l.id = t.lane and l.epoch = t.epoch
    order by l.id for update of l) x;
  insert into {schema}.stream_batches (lane, first_seq, last_seq, sent_at)
    select l.id, l.cursor + 1, t.up_to, clock_timestamp()
    from unnest(p_lane, p_up_to) t(lane, up_to) join {schema}.stream_lanes l on l.id = t.lane
    where l.id = any (v_ok) and t.up_to > l.cursor;
  update {schema}.stream_lanes l
    set cursor = greatest(l.cursor, t.up_to), out_to = 0, out_at = null, starts = 0
    from unnest(p_lane, p_up_to) t(lane, up_to) where l.id = t.lane and l.id = any (v_ok);
  if cardinality(c_seq) = 0 then return v_mine; end if;
  insert into {schema}.dead (seq, attempts, died_at, last_error)
    select c.seq, coalesce(p.attempts, 0) + 1, clock_timestamp(), c.error
    from unnest(c_lane, c_seq, c_kind, c_error) c(lane, seq, kind, error)
    left join {schema}.stream_parked p on p.seq = c.seq
    where c.kind = 'dead' and c.lane = any (v_ok);
  insert into {schema}.stream_sent (seq, attempts, sent_at, last_error)
    select p.seq, p.attempts, clock_timestamp(), p.last_error
    from unnest(c_lane, c_seq, c_kind) c(lane, seq, kind)
    join {schema}.stream_parked p on p.seq = c.seq
    where c.kind = 'sent' and c.lane = any (v_ok);
  delete from {schema}.stream_parked p using unnest(c_lane, c_seq, c_kind) c(lane, seq, kind)
    where p.seq = c.seq and c.kind in ('sent', 'dead') and c.lane = any (v_ok);
  insert into {schema}.stream_parked as p (seq, lane, order_hash, attempts, starts, due_at, last_error)
    select m.seq, c.lane, m.order_hash, (c.kind = 'failed')::int, (c.kind = 'failed')::int,
      coalesce(to_timestamp(c.due / 1000), case when m.order_hash is null then m.due_at end), c.error
    from unnest(c_lane, c_seq, c_kind, c_error, c_due) c(lane, seq, kind, error, due)
    join {schema}.messages m on m.seq = c.seq
    where c.kind in ('failed', 'waits') and c.lane = any (v_ok)
    on conflict (seq) do update set attempts = p.attempts + excluded.attempts,
      starts = greatest(0, p.starts - (excluded.attempts = 0)::int), due_at = excluded.due_at,
      last_error = coalesce(excluded.last_error, p.last_error), updated_at = clock_timestamp();
  -- The first one of a key waits for its time, the others for it.
  update {schema}.stream_parked p set due_at = m.due_at
    from (select (select x.seq from {schema}.stream_parked x
            where x.order_hash >= k.order_hash and x.order_hash <= k.order_hash
            order by x.order_hash, x.seq limit 1) as seq
          from (select distinct y.order_hash from unnest(c_lane, c_seq) c(lane, seq)
            join {schema}.messages y on y.seq = c.seq
            where y.order_hash is not null and c.lane = any (v_ok)) k) h
    join {schema}.messages m on m.seq = h.seq
    where p.seq = h.seq and p.due_at is null;
  return v_mine;
end $$;
`;

/** A row that is no message: the cells from the attempts on are empty. */
const noMessage = `0, 0, null::float8, null::float8, null::text, null::text, null::text, null::text,
      null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text, 0,
      null::float8`;

const messageCells = `m.id::text, m.source_stream_id::text, m.source_event_id::text,
        m.integration_type::text, m.event_type::text, m.payload, m.headers, m.tenant_id::text,
        m.user_id::text, m.correlation_id::text, m.ordering_key::text, m.max_attempts,
        (extract(epoch from m.created_at) * 1000)::float8`;

const bytesOf = 'octet_length(m.payload) + coalesce(octet_length(m.headers), 0)';

/** Written so that no index but that of the lanes has this order: statistics could choose another. */
const ofLane = `m.stream_lane is not null and (m.stream_lane, m.seq) > (n.id, n.cursor)
          and (m.stream_lane, m.seq) <= (n.id, v_bound)`;

export const exchangeLanesFunction = `
-- Settles batches and gives the next ones out, in one round trip. Kinds of rows: 0, a lane that was
-- settled; 1, a message; 2, whether somebody who enqueues holds us back, and when a parked one is due.
create function {schema}.stream_exchange(p_class integer, p_lane integer[], p_epoch bigint[],
  p_number bigint[], p_up_to bigint[], c_lane integer[], c_seq bigint[], c_kind text[], c_error text[],
  c_due float8[], f_lane integer[], f_epoch bigint[], f_limit integer[], p_bytes integer, p_lease_ms integer)
returns table (o_kind smallint, o_lane integer, o_seq bigint, o_parked boolean, o_waits boolean,
  o_batch bigint,
  o_attempts integer, o_starts integer, o_out_at float8, o_due_at float8, o_last_error text, o_id text,
  o_stream text, o_event text, o_integration_type text, o_event_type text, o_payload text,
  o_headers text, o_tenant text, o_user text, o_correlation text, o_ordering_key text,
  o_max_attempts integer, o_created_at float8)
language plpgsql volatile ${planned} as $$
declare
  v_last bigint;
  v_low bigint;
  v_bound bigint;
  v_now timestamptz;
  v_now_ms float8;
  v_parked boolean;
  v_back bigint[];
  v_left bigint;
  v_room integer;
  v_count integer;
  v_out_to bigint;
  n record;
begin
  -- A cursor that a crash of the server forgets sends its batches again: it need not wait for the disk. What
  -- failed and what is dead does.
  if cardinality(c_seq) = 0 then perform set_config('synchronous_commit', 'off', true); end if;
  if cardinality(p_lane) > 0 then
    return query select 0::smallint, x, null::bigint, false, false, null::bigint, ${noMessage}
      from unnest({schema}.stream_settle(p_lane, p_epoch, p_number, p_up_to, c_lane, c_seq, c_kind, c_error,
        c_due)) x;
  end if;

  -- The order matters: the sequence, then the locks, then the messages. A number taken before the first
  -- look was taken under a lock that is still held at the second, or its row is visible to the third.
  select case when q.is_called then q.last_value else 0 end into v_last from {schema}.messages_seq_seq q;
  -- A lock holds the low 32 bits. Who came after the first look may lock a value above it, which must not
  -- be taken for one that is 2^32 below: hence the 2^28 of room.
  select min(v_last + 268435456 - ((v_last + 268435456 - k.objid::bigint) & 4294967295)) into v_low
    from pg_locks k
    where k.locktype = 'advisory' and k.objsubid = 2 and k.classid = p_class::bigint::oid
      and k.database = (select d.oid from pg_database d where d.datname = current_database());
  v_bound := least(v_last, v_low);
  v_now := clock_timestamp();
  v_now_ms := extract(epoch from v_now) * 1000;

  for at in 1..cardinality(f_lane) loop
    select l.* into n from {schema}.stream_lanes l where l.id = f_lane[at] and l.epoch = f_epoch[at]
      and not exists (select from {schema}.paused_destinations z
        where z.integration_type = l.integration_type);
    continue when not found;
    v_parked := exists (select from {schema}.stream_parked p
      where p.lane = n.id and p.due_at is not null);
    continue when not exists (select from {schema}.messages m where ${ofLane})
      and not (v_parked and exists (select from {schema}.stream_parked p
        where p.lane = n.id and p.due_at <= v_now));
    -- Nothing goes out under an epoch that is over.
    select l.* into n from {schema}.stream_lanes l
      where l.id = f_lane[at] and l.epoch = f_epoch[at] for update;
    continue when not found;
    -- Given out three times without an end: one by one, to find the message that ends its process.
    v_room := case when n.starts >= 3 then 1 else f_limit[at] end;
    v_left := p_bytes;
    v_back := '{}';

    if v_parked then
      select coalesce(array_agg(y.seq order by y.seq), '{}'), p_bytes - coalesce(max(y.bytes), 0)
      into v_back, v_left from (
        select x.seq, sum(${bytesOf}) over (order by x.seq) as bytes,
          row_number() over (order by x.seq) as place
        from (
          select h.seq from {schema}.stream_parked h
          where h.lane = n.id and h.due_at <= v_now and h.order_hash is null
          union all
          select q.seq
          from (select distinct h.order_hash from {schema}.stream_parked h
            where h.lane = n.id and h.due_at <= v_now and h.order_hash is not null) k
          cross join lateral (
            -- In order, up to the first one that is not due.
            select i.seq, bool_and(coalesce(i.due_at, '-infinity') <= v_now) over (order by i.seq) as is_due
            from (select p.seq, p.due_at from {schema}.stream_parked p
              where p.order_hash >= k.order_hash and p.order_hash <= k.order_hash
              order by p.order_hash, p.seq limit greatest(1, v_room / 2)) i) q
          where q.is_due
        ) x join {schema}.messages m on m.seq = x.seq) y
      where y.place <= greatest(1, v_room / 2) and (y.bytes <= p_bytes or y.place = 1);
      return query
        with started as (
          update {schema}.stream_parked p set starts = p.starts + 1 where p.seq = any (v_back)
          returning p.seq, p.attempts, p.starts, p.due_at, p.last_error)
        select 1::smallint, n.id, m.seq, true, false, n.batch + 1, t.attempts, t.starts, v_now_ms,
          (extract(epoch from coalesce(t.due_at, m.due_at)) * 1000)::float8, t.last_error, ${messageCells}
        from started t join {schema}.messages m on m.seq = t.seq order by m.seq;
    end if;

    v_room := v_room - cardinality(v_back);
    v_out_to := n.cursor;
    if v_room > 0 then
      return query
        select 1::smallint, n.id, m.seq, false,
          m.due_at > v_now or case when v_parked and m.order_hash is not null then exists (
            select from {schema}.stream_parked p where p.order_hash = m.order_hash
              and p.seq <> all (v_back)) else false end,
          n.batch + 1, 0, case when m.place = 1 and v_back = '{}' then greatest(1, n.starts - 2) else 1 end, v_now_ms,
          (extract(epoch from m.due_at) * 1000)::float8, null::text, ${messageCells}
        from (select m.*, sum(${bytesOf}) over (order by m.stream_lane, m.seq) as bytes,
            row_number() over (order by m.stream_lane, m.seq) as place
          from {schema}.messages m where ${ofLane}
          order by m.stream_lane, m.seq limit v_room) m
        where m.bytes <= v_left or (m.place = 1 and v_back = '{}');
      get diagnostics v_count = row_count;
      if v_count > 0 then
        select m.seq into v_out_to from {schema}.messages m where ${ofLane}
          order by m.stream_lane, m.seq offset v_count - 1 limit 1;
      end if;
    end if;
    update {schema}.stream_lanes l set starts = l.starts + 1, batch = n.batch + 1, out_to = v_out_to,
      out_at = v_now,
      lease_until = v_now + p_lease_ms * interval '1 millisecond'
      where l.id = n.id;
  end loop;

  return query select 2::smallint, 0, null::bigint, v_low is not null, false, null::bigint, 0, 0, null::float8,
    (extract(epoch from (select min(h.due_at) from unnest(f_lane) f(lane) cross join lateral (
      select p.due_at from {schema}.stream_parked p
      where p.lane = f.lane and p.due_at > v_now and p.due_at < 'infinity'
      order by p.due_at limit 1) h)) * 1000)::float8,
    null::text, null::text, null::text, null::text, null::text, null::text, null::text, null::text,
    null::text, null::text, null::text, null::text, 0, null::float8;
end $$;
`;
