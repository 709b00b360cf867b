// The database functions of the event store: they decide appends and bound how far readers may read.

export const eventStoreFunctions = `
create function {schema}.intern_names(p_names text[]) returns table (name text, id integer)
language plpgsql volatile as $$
begin
  insert into {schema}.names (name)
    select distinct x from unnest(p_names) x
    where not exists (select 1 from {schema}.names n where n.name = x) order by x
    on conflict do nothing;
  return query select n.name, n.id from {schema}.names n where n.name = any(p_names);
end $$;

-- The safe head: no event can still appear at or below it. An appending transaction holds a shared advisory
-- lock on the value that the sequence had before the transaction took numbers, until its commit is visible.
-- The lowest locked value is the bound. Unrelated long transactions do not hold readers back.
create function {schema}.safe_head(p_class integer, out head bigint, out in_flight boolean)
language plpgsql volatile as $$
declare
  v_bound bigint;
  v_low bigint;
begin
  -- The order of the three queries matters: sequence, locks, events. A number taken before the first query
  -- is either under a lock that the second query sees, or committed and visible to the third.
  select case when is_called then last_value else 0 end into v_bound from {schema}.event_sequence;
  -- A lock holds the low 32 bits of a value. A transaction that began after the first query may lock a value above the
  -- bound. The margin of 2^28 prevents reading this value as one that is 2^32 lower.
  select min(v_bound + 268435456 - ((v_bound + 268435456 - l.objid::bigint) & 4294967295)) into v_low
    from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 2 and l.classid = p_class::bigint::oid
      and l.database = (select d.oid from pg_database d where d.datname = current_database());
  in_flight := v_low is not null;
  -- The head is never beyond an existing event. After a crash the sequence may reissue the numbers of a transaction
  -- that was rolled back. A reader that had passed these numbers would miss their new events.
  select coalesce(max(e.sequence), 0) into head from {schema}.events e
    where e.sequence <= least(v_bound, v_low);
end $$;

-- Reads the events after a position up to the safe head in one round trip, for live readers. It must be a
-- function: a single statement would read the events with a snapshot older than the head.
create function {schema}.read_new(p_class integer, p_after bigint, p_limit integer)
returns table (head bigint, sequence bigint, stream text, revision bigint, event_id text,
               type_id integer, recorded_at_ms bigint, payload text, meta text)
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
declare
  v_head bigint;
begin
  select h.head into v_head from {schema}.safe_head(p_class) h;
  if v_head > p_after then
    return query
      select v_head, e.sequence, s.name, e.revision, e.event_id, e.type_id, e.recorded_at_ms, e.payload, e.meta
      from {schema}.events e join {schema}.streams s on s.id = e.stream_id
      where e.sequence > p_after and e.sequence <= v_head order by e.sequence limit p_limit;
  else
    head := v_head;
    return next;
  end if;
end $$;

-- Runs at the start of every append.
create function {schema}.begin_append(p_class integer) returns void
language plpgsql volatile as $$
declare
  v_setting constant text := 'millrace.appending_' || p_class;
  v_now bigint;
begin
  -- An acknowledged append must survive a crash.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  -- From here on, readers stay below the numbers that this transaction will take. The first lock of a
  -- transaction is the lowest, and one per append would fill the server's lock table. The setting ends with
  -- the transaction or savepoint, exactly like the lock.
  if coalesce(current_setting(v_setting, true), '') = '' then
    select case when q.is_called then q.last_value else 0 end into v_now from {schema}.event_sequence q;
    perform pg_advisory_xact_lock_shared(p_class, ((v_now + 2147483648) % 4294967296 - 2147483648)::integer);
    perform set_config(v_setting, 'locked', true);
  end if;
end $$;

-- The common case: one plain write to one stream, in a third of the time. Every other case falls back to
-- append_events.
create function {schema}.append_to_stream(
  p_class integer, p_channel text, p_now_ms bigint,
  p_stream text, p_new boolean, p_expected bigint, p_category integer,
  e_id text[], e_type integer[], e_tenant integer[], e_payload text, e_meta text,
  out outcome text, out revision bigint, out sequence bigint
)
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off
as $$
declare
  c_soft constant bigint := 9007199254740991;
  v_events constant integer := array_length(e_id, 1);
  v_id bigint;
  v_before bigint := -1;
begin
  perform {schema}.begin_append(p_class);
  if p_new and p_expected in (-1, -2) then
    insert into {schema}.streams as t (name, revision) values (p_stream, v_events - 1)
      on conflict do nothing returning t.id into v_id;
  elsif p_expected >= 0 then
    update {schema}.streams t
      set revision = t.revision + v_events,
          truncate_before = case t.truncate_before when c_soft then t.revision + 1 else t.truncate_before end
      where t.name = p_stream and t.revision = p_expected and not t.tombstoned
      returning t.id, p_expected into v_id, v_before;
  elsif p_expected = -2 then
    select t.id, t.revision into v_id, v_before from {schema}.streams t
      where t.name = p_stream and not t.tombstoned for update;
    if exists (select 1 from {schema}.events e where e.stream_id = v_id and e.event_id = any(e_id)) then
      v_id := null;
    else
      update {schema}.streams t
        set revision = t.revision + v_events,
            truncate_before = case t.truncate_before when c_soft then t.revision + 1 else t.truncate_before end
        where t.id = v_id;
    end if;
  end if;
  if v_id is null then
    select a.outcome, a.revision, a.sequence into outcome, revision, sequence
      from {schema}.append_events(p_class, p_channel, p_now_ms, array[p_stream], true,
        array[0], array[1], array[p_expected], array[1], array[v_events], array[p_category], array[false],
        array[null]::integer[], array[null]::bigint[], array[null]::bigint[], array[null]::bigint[], array[null]::bigint[],
        array_fill(1, array[v_events]), e_id, e_type, e_tenant, e_payload, e_meta) a;
    return;
  end if;
  insert into {schema}.events (sequence, stream_id, revision, type_id, category_id, tenant_id,
      recorded_at_ms, event_id, payload, meta)
    select nextval('{schema}.event_sequence'), v_id, v_before + e.ord, e.type, p_category, e.tenant,
           p_now_ms, e.id, e.payload, e.meta
    from unnest(e_id, e_type, e_tenant, string_to_array(e_payload, E'\\n'), string_to_array(e_meta, E'\\n'))
      with ordinality e(id, type, tenant, payload, meta, ord);
  perform {schema}.notify_waiting(p_class, p_channel);
  outcome := 'appended';
  revision := v_before + v_events;
  sequence := currval('{schema}.event_sequence');
end $$;

-- The most common case: one event, outside a caller's transaction. Same result as append_to_stream in half of
-- the time: only the two row changes are statements, and PL/pgSQL evaluates expressions without running a query.
create function {schema}.append_event(
  p_class integer, p_channel text, p_now_ms bigint,
  p_stream text, p_new boolean, p_expected bigint, p_category integer,
  e_id text, e_type integer, e_tenant integer, e_payload text, e_meta text
) returns text -- outcome,revision,sequence: cheaper than a record.
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $$
declare
  c_soft constant bigint := 9007199254740991;
  v_id bigint;
  v_before bigint := -1;
  v_now bigint;
  v_sequence bigint;
begin
  if current_setting('synchronous_commit') = 'off' and set_config('synchronous_commit', 'on', true) is null then
    null;
  end if;
  -- The same lock as in begin_append. This transaction has one append, so it needs no setting that marks the lock.
  v_now := coalesce(pg_sequence_last_value('{schema}.event_sequence'), 0);
  if pg_advisory_xact_lock_shared(p_class, ((v_now + 2147483648) % 4294967296 - 2147483648)::integer) is null then
    null;
  end if;
  if p_new and p_expected in (-1, -2) then
    insert into {schema}.streams as t (name, revision) values (p_stream, 0)
      on conflict do nothing returning t.id into v_id;
  elsif p_expected >= 0 then
    update {schema}.streams t
      set revision = t.revision + 1,
          truncate_before = case t.truncate_before when c_soft then t.revision + 1 else t.truncate_before end
      where t.name = p_stream and t.revision = p_expected and not t.tombstoned
      returning t.id, p_expected into v_id, v_before;
  end if;
  if v_id is null then
    return (
      select concat_ws(',', a.outcome, coalesce(a.revision, 0), coalesce(a.sequence, 0))
      from {schema}.append_to_stream(p_class, p_channel, p_now_ms, p_stream, p_new, p_expected, p_category,
        array[e_id], array[e_type], array[e_tenant], e_payload, e_meta) a);
  end if;
  v_sequence := nextval('{schema}.event_sequence');
  insert into {schema}.events values (
    v_sequence, v_id, v_before + 1, e_type, p_category, e_tenant, p_now_ms, e_id, e_payload, e_meta);
  -- The same notification as in notify_waiting.
  if not pg_try_advisory_lock(p_class + 1, 1) then
    perform pg_notify(p_channel, '');
  elsif not pg_advisory_unlock(p_class + 1, 1) then
    null;
  end if;
  return 'appended,' || (v_before + 1) || ',' || v_sequence;
end $$;
`;

/** A separate migration: an older version counted an id that a stream has twice as two. */
export const appendEventsFunction = `
-- Appends many independent units in one call. A unit is one or more writes that succeed or fail together;
-- a rejected unit changes nothing and does not affect the others. Returns one row per write.
-- Payloads and metas are joined by line breaks, which single-line JSON never contains.
create or replace function {schema}.append_events(
  p_class integer, p_channel text, p_now_ms bigint,
  s_name text[], s_new boolean,
  w_unit integer[], w_slot integer[], w_expected bigint[], w_first integer[], w_count integer[],
  w_category integer[], w_tombstone boolean[],
  w_retain integer[], w_retain_expected bigint[], w_truncate bigint[], w_max_count bigint[], w_max_age bigint[],
  e_write integer[], e_id text[], e_type integer[], e_tenant integer[], e_payload text, e_meta text
) returns table (outcome text, revision bigint, sequence bigint)
-- A connection keeps its plans. A plan for a small table would scan all streams on every append once the table is
-- large. Planning on every call costs too much, so the plans are generic and use indexes only.
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  c_soft constant bigint := 9007199254740991;
  v_slots integer := array_length(s_name, 1);
  v_writes integer := array_length(w_slot, 1);
  v_events integer := array_length(e_id, 1);
  s record;
  slot_id bigint[] := array_fill(null::bigint, array[v_slots]);
  slot_revision bigint[] := array_fill((-1)::bigint, array[v_slots]);
  slot_truncate bigint[] := array_fill(0::bigint, array[v_slots]);
  slot_exists boolean[] := array_fill(false, array[v_slots]);
  slot_tombstoned boolean[] := array_fill(false, array[v_slots]);
  o_outcome text[] := array_fill(null::text, array[v_writes]);
  o_revision bigint[] := array_fill(null::bigint, array[v_writes]);
  o_first bigint[] := array_fill(null::bigint, array[v_writes]);
  b_revision bigint[] := array_fill(null::bigint, array[v_writes]);
  b_truncate bigint[] := array_fill(null::bigint, array[v_writes]);
  b_exists boolean[] := array_fill(null::boolean, array[v_writes]);
  b_retain_truncate bigint[] := array_fill(null::bigint, array[v_writes]);
  b_retain_exists boolean[] := array_fill(null::boolean, array[v_writes]);
  v_known text[];
  v_sequences bigint[];
  i integer;
  j integer;
  k integer;
  r integer;
  v_expected bigint;
  v_actual bigint;
  v_found bigint;
  v_accepted integer := 0;
begin
  perform {schema}.begin_append(p_class);
  -- All batches lock streams in the same order, which prevents deadlocks. A batch locks the new streams while it holds
  -- no other lock, then the existing ones.
  if s_new then
    insert into {schema}.streams (name)
      select o.name from unnest(s_name) with ordinality o(name, ord)
      where not exists (select 1 from {schema}.streams t where t.name = o.name)
      order by o.ord on conflict do nothing;
  end if;
  for s in
    select o.ord, t.id, t.revision, t.truncate_before, t.tombstoned, t.has_metadata
    from unnest(s_name) with ordinality o(name, ord) join {schema}.streams t on t.name = o.name
    order by o.ord for update of t
  loop
    slot_id[s.ord] := s.id;
    slot_revision[s.ord] := s.revision;
    slot_truncate[s.ord] := s.truncate_before;
    slot_exists[s.ord] := s.revision >= 0 or s.has_metadata;
    slot_tombstoned[s.ord] := s.tombstoned;
  end loop;
  if array_position(slot_id, null) is not null then
    raise exception 'a stream marked as existing has no row' using errcode = 'MR001';
  end if;
  -- Event ids that their streams already contain: almost always none. A write that expects an exact revision
  -- does not need this check.
  if w_expected && array[-2, -4]::bigint[] then
    select array_agg(e.stream_id || ' ' || e.event_id) into v_known
      from unnest(e_write, e_id) n(write, id)
      join {schema}.events e on e.stream_id = slot_id[w_slot[n.write]] and e.event_id = n.id
      where w_expected[n.write] in (-2, -4) and slot_revision[w_slot[n.write]] >= 0;
  end if;

  for i in 1..v_writes loop
    continue when o_outcome[i] is not null;
    k := w_slot[i];
    v_expected := w_expected[i];
    v_actual := slot_revision[k];
    b_revision[i] := v_actual;
    b_truncate[i] := slot_truncate[k];
    b_exists[i] := slot_exists[k];
    o_revision[i] := v_actual;
    r := w_retain[i];
    if r is not null then
      b_retain_truncate[i] := slot_truncate[r];
      b_retain_exists[i] := slot_exists[r];
      if slot_tombstoned[r] or (w_retain_expected[i] = -4 and slot_truncate[r] = c_soft) then
        o_outcome[i] := 'deleted';
      elsif not (w_retain_expected[i] = -2 or (w_retain_expected[i] = -4 and slot_exists[r])
          or (w_retain_expected[i] = -1 and (slot_revision[r] = -1 or slot_truncate[r] = c_soft))
          or w_retain_expected[i] = slot_revision[r]) then
        o_outcome[i] := 'conflict';
        o_revision[i] := slot_revision[r];
      end if;
    end if;
    if o_outcome[i] is not null then
      null; -- Rejected because of the stream that the metadata describes.
    elsif slot_tombstoned[k] then
      o_outcome[i] := 'deleted';
    elsif v_expected = -4 and not slot_exists[k] then
      o_outcome[i] := 'conflict';
    elsif v_expected = -4 and slot_truncate[k] = c_soft then
      o_outcome[i] := 'deleted';
    elsif v_expected in (-2, -4) then
      o_outcome[i] := 'append';
      if v_known is not null and (slot_id[k] || ' ' || e_id[w_first[i]]) = any(v_known) then
        select count(distinct e.event_id), max(e.revision) into v_found, v_actual from {schema}.events e
          where e.stream_id = slot_id[k] and e.event_id = any(e_id[w_first[i] : w_first[i] + w_count[i] - 1]);
        if v_found = w_count[i] then
          o_outcome[i] := 'repeated';
          o_revision[i] := v_actual;
        else
          o_outcome[i] := 'conflict';
        end if;
      end if;
    elsif v_expected = v_actual then
      o_outcome[i] := 'append';
    elsif v_expected > v_actual then
      o_outcome[i] := 'conflict';
    else
      select count(*) into v_found
        from unnest(e_id[w_first[i] : w_first[i] + w_count[i] - 1]) with ordinality u(id, ord)
        join {schema}.events e on e.stream_id = slot_id[k] and e.revision = v_expected + u.ord and e.event_id = u.id;
      if v_found = w_count[i] then
        o_outcome[i] := 'repeated';
        o_revision[i] := v_expected + w_count[i];
      elsif v_expected = -1 and slot_truncate[k] = c_soft and not exists (
          select 1 from {schema}.events e
          where e.stream_id = slot_id[k] and e.revision = 0 and e.event_id = e_id[w_first[i]]) then
        -- A soft-deleted stream counts as not existing and continues its revisions, except for a late duplicate.
        o_outcome[i] := 'append';
      else
        o_outcome[i] := 'conflict';
      end if;
    end if;

    if o_outcome[i] = 'append' then
      o_first[i] := slot_revision[k] + 1;
      o_revision[i] := slot_revision[k] + w_count[i];
      if slot_truncate[k] = c_soft then slot_truncate[k] := slot_revision[k] + 1; end if;
      slot_revision[k] := o_revision[i];
      slot_exists[k] := true;
      -- The tombstone also applies to later writes of this batch.
      slot_tombstoned[k] := w_tombstone[i];
      if r is not null then
        -- New metadata restores a deleted stream, but not its deleted events.
        slot_truncate[r] := case
          when slot_truncate[r] = c_soft and coalesce(w_truncate[i], 0) <> c_soft then slot_revision[r] + 1
          else coalesce(w_truncate[i], 0) end;
        slot_exists[r] := true;
      end if;
    elsif o_outcome[i] in ('conflict', 'deleted') then
      -- The whole unit is rejected: undo its earlier writes, last first.
      for j in reverse i..1 loop
        exit when w_unit[j] <> w_unit[i];
        if o_outcome[j] = 'append' then
          if w_retain[j] is not null then
            slot_truncate[w_retain[j]] := b_retain_truncate[j];
            slot_exists[w_retain[j]] := b_retain_exists[j];
          end if;
          slot_revision[w_slot[j]] := b_revision[j];
          slot_truncate[w_slot[j]] := b_truncate[j];
          slot_exists[w_slot[j]] := b_exists[j];
          slot_tombstoned[w_slot[j]] := false;
          o_outcome[j] := 'withdrawn';
        end if;
      end loop;
      for j in i + 1..v_writes loop
        exit when w_unit[j] <> w_unit[i];
        o_outcome[j] := 'withdrawn';
      end loop;
    end if;
  end loop;

  -- Numbers are taken while the streams are locked, so that they ascend with the revision of each stream.
  v_sequences := array(select nextval('{schema}.event_sequence') from generate_series(1, v_events));
  insert into {schema}.events (sequence, stream_id, revision, type_id, category_id, tenant_id,
      recorded_at_ms, event_id, payload, meta)
    select v_sequences[e.ord], slot_id[w_slot[e.write]], o_first[e.write] + (e.ord - w_first[e.write]),
           e.type, w_category[e.write], e.tenant, p_now_ms, e.id, e.payload, e.meta
    from unnest(e_write, e_id, e_type, e_tenant, string_to_array(e_payload, E'\\n'),
                string_to_array(e_meta, E'\\n')) with ordinality
      e(write, id, type, tenant, payload, meta, ord)
    where o_outcome[e.write] = 'append';
  get diagnostics v_accepted = row_count;

  if v_accepted > 0 then
    update {schema}.streams t
      set revision = c.revision, truncate_before = c.truncate_before, tombstoned = c.tombstoned
      from unnest(slot_id, slot_revision, slot_truncate, slot_tombstoned)
        c(id, revision, truncate_before, tombstoned)
      where t.id = c.id and (t.revision <> c.revision or t.truncate_before <> c.truncate_before);
    for i in 1..v_writes loop
      continue when w_retain[i] is null or o_outcome[i] <> 'append';
      update {schema}.streams t
        set max_count = w_max_count[i], max_age_s = w_max_age[i], has_metadata = true
        where t.id = slot_id[w_retain[i]];
    end loop;
    perform {schema}.notify_waiting(p_class, p_channel);
  end if;

  return query
    select case w.outcome when 'append' then 'appended' else w.outcome end, w.revision,
           case when w.outcome = 'append' then v_sequences[w.first + w.count - 1]
                when w.outcome = 'repeated' then (select e.sequence from {schema}.events e
                  where e.stream_id = slot_id[w.slot] and e.revision = w.revision) end
    from unnest(o_outcome, o_revision, w_first, w_count, w_slot) with ordinality
      w(outcome, revision, first, count, slot, ord)
    order by w.ord;
end $$;
`;
