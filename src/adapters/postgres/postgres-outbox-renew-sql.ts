// How the claims of others are taken over, and their leases lengthened: functions in the database.

import { jobsKept } from '../../outbox/outbox-job.ts';
import { ms, newToken, planned } from './postgres-outbox-sql.ts';

/**
 * Rows are found by their key, here by nothing but a nested loop: a lease that is lengthened meanwhile has
 * moved its row, and by its old place it would be taken for another owner's.
 */
const byKey = `${planned} set enable_hashjoin = off set enable_mergejoin = off`;

/**
 * Seq, token and whether it is to be read, of each claim; worker; lease in milliseconds; whether its queue is
 * a tenant's own. What begins with it is written down in the same row: see `JobEntry`.
 */
export const renewFunctions = `
create function {schema}.renew_claims(bigint[], bigint[], boolean[], text, integer, boolean)
returns table (o_id text, o_stream text, o_event text, o_integration_type text, o_event_type text,
  o_payload text, o_headers text, o_tenant text, o_user text, o_correlation text, o_ordering_key text,
  o_due_at float8, o_attempts integer, o_max_attempts integer, o_created_at float8, o_last_error text,
  o_locked_at float8, o_seq bigint, o_token bigint, o_was bigint, o_starts integer, o_paused boolean)
language plpgsql volatile ${byKey} as $$
begin
  return query with claim as materialized (
    select c.*, exists (select from {schema}.paused_destinations p where p.integration_type =
      (select m.integration_type from {schema}.messages m where m.seq = c.seq)) as paused
    from unnest($1, $2, $3) as c(seq, was, is_read)
  ), token as materialized (select ${newToken} as token, clock_timestamp() as at
  ), freed as (
    update {schema}.ready r
    set token = 0, lease_until = '-infinity', locked_at = null, locked_by = null, starts = r.starts - 1
    from claim c where c.paused and r.seq = c.seq and r.token = c.was
    returning c.was, c.is_read, r.*
  ), renewed as (
    update {schema}.ready r
    set token = t.token, locked_by = $4, locked_at = t.at,
      lease_until = clock_timestamp() + $5 * interval '1 millisecond',
      jobs = case when jsonb_array_length(r.jobs) >= ${jobsKept} then r.jobs - 0
          else coalesce(r.jobs, '[]') end
        || jsonb_build_array(jsonb_build_array(r.attempts + 1, r.token, t.token, $6,
          floor(${ms('r.locked_at')}), floor(${ms('t.at')})))
    from claim c, token t where not c.paused and r.seq = c.seq and r.token = c.was
    returning c.was, c.is_read, r.*
  )
  select m.id::text, m.source_stream_id::text, m.source_event_id::text, m.integration_type::text,
    m.event_type::text, m.payload, m.headers, m.tenant_id::text, m.user_id::text,
    m.correlation_id::text, m.ordering_key::text, ${ms('c.due_at')}::float8, c.attempts, m.max_attempts,
    ${ms('m.created_at')}::float8, c.last_error, ${ms('c.locked_at')}::float8, c.seq, c.token, c.was,
    c.starts, c.token = 0
  from (select * from freed union all select * from renewed) c
  left join {schema}.messages m on c.is_read and m.seq = c.seq;
end $$;

create function {schema}.extend_claims(bigint[], bigint[], integer) returns bigint
language plpgsql volatile ${byKey} as $$
declare
  v_count bigint;
begin
  update {schema}.ready r set lease_until = clock_timestamp() + $3 * interval '1 millisecond'
  from unnest($1, $2) as c(seq, token) where r.seq = c.seq and r.token = c.token;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
`;

export const renewSql = 'select * from {schema}.renew_claims($1, $2, $3, $4, $5, $6)';

export const extendSql = 'select {schema}.extend_claims($1, $2, $3)';
