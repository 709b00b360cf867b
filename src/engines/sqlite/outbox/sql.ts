// The statements of the outbox ledger in SQLite; all statements of a request run in one commit.

import { jobsKept } from '../../../outbox/outbox-job.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';

const now = `cast(unixepoch('subsec') * 1000 as integer)`;

const given = (...names: readonly string[]): string =>
  names.map((name) => `json_extract(value, '$.${name}')`).join(', ');

/** ?1: rows as JSON, each with an id. */
export const insertMessagesSql = `
insert into outbox_messages (id, source_stream_id, source_event_id, integration_type, event_type,
  payload, headers, tenant_id, user_id, correlation_id, ordering_key, max_attempts, lane, order_hash,
  due_at_ms, created_at_ms)
select ${given('id', 'sourceStreamId', 'sourceEventId', 'integrationType', 'eventType', 'payload')},
  ${given('headers', 'tenantId', 'userId', 'correlationId', 'orderingKey', 'maxAttempts')},
  ${given('lane', 'orderHash')}, coalesce(cast(${given('dueAtMs')} as integer), ${now}), ${now}
from json_each(?1) where true order by key
on conflict (source_stream_id, source_event_id, integration_type) do nothing`;

/** ?1: the rows of `insertMessagesSql`. Rows that existed before have another id. */
export const insertReadySql = `
insert into outbox_ready (seq, lane, order_hash, available_at_ms, due_at_ms, updated_at_ms)
select m.seq, m.lane, m.order_hash, m.due_at_ms, m.due_at_ms, m.created_at_ms
from json_each(?1) join outbox_messages m on m.id = ${given('id')} order by m.seq`;

/** ?1: the rows of `insertMessagesSql`. */
export const findSourcesSql = `
select key, m.id from json_each(?1) join outbox_messages m
  on m.source_stream_id = ${given('sourceStreamId')} and m.source_event_id = ${given('sourceEventId')}
  and m.integration_type = ${given('integrationType')}`;

/** ?1: outcomes as JSON: seq, token, kind, error, dueAtMs. */
const outcomes = (kinds: string): string => `
from json_each(?1) join outbox_ready r
  on r.seq = json_extract(value, '$.seq') and r.token = json_extract(value, '$.token')
where json_extract(value, '$.kind') in (${kinds})`;

const isMine = (kinds: string): string => `seq in (select r.seq ${outcomes(kinds)})`;

/** Completes the job that was started under the token of the row; releasing the row removes the job. */
const jobsAfter = (kind: string): string => `
  case when not json_valid(r.jobs) then null
    when json_extract(r.jobs, '$[#-1][2]') is not r.token then r.jobs
    when ${kind} = 'released' then nullif(json_remove(r.jobs, '$[#-1]'), '[]')
    else json_insert(r.jobs, '$[#-1][#]', ${now}, '$[#-1][#]', ${kind}) end`;

export const settleSqls: readonly string[] = [
  // Select the outcomes whose token is valid; other outcomes change nothing.
  `select r.seq, r.token ${outcomes(`'sent', 'dead', 'failed', 'released'`)}`,
  `insert into outbox_sent (seq, attempts, sent_at_ms, last_error, jobs)
   select r.seq, r.attempts, ${now}, r.last_error, ${jobsAfter(`'sent'`)} ${outcomes(`'sent'`)}`,
  `insert into outbox_dead (seq, attempts, died_at_ms, last_error, jobs)
   select r.seq, r.attempts + 1, ${now}, json_extract(value, '$.error'), ${jobsAfter(`'dead'`)} ${outcomes(`'dead'`)}`,
  `delete from outbox_ready where ${isMine(`'sent', 'dead'`)}`,
  `update outbox_ready as r set token = 0, locked_at_ms = null, locked_by = null, updated_at_ms = ${now},
     jobs = ${jobsAfter('o.kind')}, attempts = attempts + (o.kind = 'failed'), starts = starts - (o.kind = 'released'),
     last_error = coalesce(o.error, last_error), due_at_ms = coalesce(o.next_due_at_ms, due_at_ms),
     available_at_ms = coalesce(o.next_due_at_ms, due_at_ms)
   from (select json_extract(value, '$.seq') as its_seq, json_extract(value, '$.kind') as kind,
       json_extract(value, '$.token') as its_token, json_extract(value, '$.error') as error,
       cast(json_extract(value, '$.dueAtMs') as integer) as next_due_at_ms from json_each(?1)) o
   where o.its_seq = r.seq and o.its_token = r.token
     and o.kind in ('failed', 'released')`,
];

/** ?1: the outcomes of `settleSqls`, with attempts as JSON. Runs after its first statement, before the tokens change. */
export const recordAttemptsSqls: readonly string[] = [
  `insert into outbox_attempts (seq, attempt)
   select r.seq, ${given('attempt')} ${outcomes(`'sent', 'dead', 'failed'`)} and ${given('attempt')} is not null`,
  `delete from outbox_attempts where id in (
     select a.id from json_each(?1) join outbox_attempts a on a.seq = json_extract(value, '$.seq')
     where (select count(*) from outbox_attempts n where n.seq = a.seq and n.id > a.id) >= ${outboxLimits.attemptsKept})`,
];

/** ?1: the id of a message. */
export const attemptsSql = `
select a.attempt from outbox_messages m join outbox_attempts a on a.seq = m.seq where m.id = ?1 order by a.id`;

export const nextTokenSql = 'update outbox_tokens set token = token + 1';

const isFree = (row: string): string => `
  (${row}.order_hash is null or not exists (select 1 from outbox_ready e
     where e.order_hash = ${row}.order_hash and e.seq < ${row}.seq))
  and not exists (select 1 from outbox_paused p join outbox_messages m
     on m.integration_type = p.integration_type where m.seq = ${row}.seq)`;

/** Whether a claim may find a message. */
export const anyDueSql = `select 1 from outbox_ready where available_at_ms <= ${now} limit 1`;

const members = (...names: readonly string[]): string =>
  names.map((name) => `'${name}', m.${name}`).join(', ');

/** The columns of a message that never change, as JSON. */
const message = `
  (select json_object(
    ${members('id', 'source_stream_id', 'source_event_id', 'integration_type', 'event_type')},
    ${members('payload', 'headers', 'tenant_id', 'user_id', 'correlation_id', 'ordering_key')},
    ${members('max_attempts', 'created_at_ms')}
  ) from outbox_messages m where m.seq = outbox_ready.seq)`;

/** ?1: lanes; ?2: limit; ?3: share of each lane; ?4: worker; ?5: lease in ms. */
export const claimSql = `
update outbox_ready set token = (select token from outbox_tokens), starts = starts + 1,
  locked_by = ?4, locked_at_ms = ${now}, updated_at_ms = ${now}, available_at_ms = ${now} + ?5
where seq in (
  select seq from (
    select r.seq, 0 as turn from json_each(?1) l join outbox_ready r on r.seq in (
      select x.seq from outbox_ready x
      where x.lane = l.value and x.available_at_ms <= ${now} and ${isFree('x')}
      order by x.available_at_ms, x.seq limit ?3)
    union all
    select seq, 1 from (select x.seq from outbox_ready x
      where x.available_at_ms <= ${now} and ${isFree('x')}
      order by x.available_at_ms, x.seq limit ?2)
  ) group by seq order by min(turn), seq limit ?2)
returning seq, token, attempts, starts, locked_at_ms, due_at_ms, last_error,
  ${message} as message`;

/** ?1: claims as JSON: seq, token. */
const fromClaimedRows = `
from json_each(?1) c join outbox_ready on seq = json_extract(c.value, '$.seq')
  and token = json_extract(c.value, '$.token')`;

const isPaused = `exists (select 1 from outbox_paused p join outbox_messages m
  on m.integration_type = p.integration_type where m.seq = outbox_ready.seq)`;

/**
 * ?1: claims; ?2: worker; ?3: lease in ms; ?4: whether the queue belongs to one tenant. `read` runs first: an UPDATE
 * returns no columns of the claims.
 */
export const renewSqls = {
  read: `select seq, token, attempts, starts, due_at_ms, last_error, ${isPaused} as paused,
    ${message} as message ${fromClaimedRows}`,
  free: `update outbox_ready set token = 0, starts = starts - 1, locked_at_ms = null, locked_by = null,
    updated_at_ms = ${now}, available_at_ms = due_at_ms
    where seq in (select seq ${fromClaimedRows}) and ${isPaused}`,
  take: `update outbox_ready set token = (select token from outbox_tokens), locked_by = ?2,
    locked_at_ms = ${now}, updated_at_ms = ${now}, available_at_ms = ${now} + ?3,
    jobs = json_insert(
      case when json_valid(jobs) is not 1 then '[]'
        when json_array_length(jobs) >= ${jobsKept} then json_remove(jobs, '$[0]') else jobs end, '$[#]',
      json_array(attempts + 1, token, (select token from outbox_tokens), ?4, locked_at_ms, ${now}))
    where seq in (select seq ${fromClaimedRows}) returning seq, token, locked_at_ms`,
} as const;

/** ?1: claims; ?2: lease in ms. */
export const extendSql = `
update outbox_ready set available_at_ms = ${now} + ?2 where seq in (select seq ${fromClaimedRows}) returning seq, token`;

const historyOf = (row: string): string => `coalesce(
  (select x.jobs from outbox_sent x where x.seq = ${row}.seq),
  (select x.jobs from outbox_ready x where x.seq = ${row}.seq),
  (select x.jobs from outbox_dead x where x.seq = ${row}.seq)) as jobs,
  (select x.attempt from outbox_attempts x where x.seq = ${row}.seq order by x.id desc limit 1) as attempt`;

/** ?1: ids as JSON; ?2: status; ?3: integration type; ?4: tenant; ?5: since; ?6: after this id; ?7: limit. */
export function listSql(oldestFirst: boolean, byIds: boolean): string {
  const [order, after, all] = oldestFirst
    ? ['seq', '>', '0']
    : ['seq desc', '<', '9223372036854775807'];
  return `
select o.*, ${historyOf('o')} from (
select seq, coalesce(sum(chars) over (order by ${order} rows between unbounded preceding and 1 preceding), 0) as chars_before
from (select seq, octet_length(payload) + coalesce(octet_length(headers), 0) as chars from outbox_rows
where ${byIds ? 'id in (select value from json_each(?1))' : '?1 is null'}
  and (?2 is null or status = ?2) and (?3 is null or integration_type = ?3)
  and (?4 is null or tenant_id = ?4)
  and (?5 is null or case when status in ('DEAD', 'DISCARDED') then updated_at_ms else created_at_ms end >= ?5)
  and seq ${after} case when ?6 is null then ${all} else (select seq from outbox_messages where id = ?6) end
order by ${order} limit ?7)) p cross join outbox_rows o on o.seq = p.seq
where p.chars_before < max(?8, 1) order by o.${order}`;
}

/**
 * ?1: streams and events as JSON; ?2: limit. `cross join` keeps the order: one lookup in ux_outbox_source per event.
 * Payloads are not read: those of 1,000 messages would fill the memory.
 */
export const bySourceSql = `
select o.seq, o.id, o.source_stream_id, o.source_event_id, o.integration_type, o.event_type, '{}' as payload, o.tenant_id,
  o.user_id, o.correlation_id, o.ordering_key, o.max_attempts, o.created_at_ms, o.attempts, o.status, o.next_due_at_ms,
  o.locked_at_ms, o.locked_by, o.updated_at_ms, o.sent_at_ms, o.last_error, o.discarded, ${historyOf('o')}
from json_each(?1) cross join outbox_rows o
  on o.source_stream_id = ${given('sourceStreamId')} and o.source_event_id = ${given('sourceEventId')}
order by o.seq limit ?2`;

const sourcesSql = `select seq from json_each(?1) cross join outbox_messages m
  on m.source_stream_id = ${given('sourceStreamId')} and m.source_event_id = ${given('sourceEventId')}`;

/** ?1: sources as JSON; ?2: the payload that replaces the erased one. */
export const eraseSql = `update outbox_messages set payload = ?2, headers = null where seq in (${sourcesSql})`;

/** ?1: sources as JSON. */
export const eraseErrorsSqls: readonly string[] = [
  ...['ready', 'sent', 'dead'].map(
    (state) => `update outbox_${state} set last_error = null where seq in (${sourcesSql})`,
  ),
  `delete from outbox_attempts where seq in (${sourcesSql})`,
];

export const countsSql = `
select 'SENT' as status, sent as n from outbox_totals
union all select iif(discarded is null, 'DEAD', 'DISCARDED'), count(*) from outbox_dead group by 1
union all select * from (
  select case when token <> 0 and available_at_ms > ${now} then 'CLAIMED'
    when attempts > 0 then 'FAILED' else 'PENDING' end as status, count(*)
  from outbox_ready group by 1)`;

/** ?1: ids as JSON; ?2: integration type; ?3: tenant; ?4: since; ?5: limit. */
export const deadSql = `
select d.seq from outbox_dead d join outbox_messages m on m.seq = d.seq
where d.discarded is null and (?1 is null or m.id in (select value from json_each(?1)))
  and (?2 is null or m.integration_type = ?2) and (?3 is null or m.tenant_id = ?3)
  and (?4 is null or d.died_at_ms >= ?4)
order by d.seq limit ?5`;

/** ?1: `seq`s as JSON. */
export const replaySqls: readonly string[] = [
  `insert into outbox_ready (seq, lane, order_hash, available_at_ms, due_at_ms, updated_at_ms, last_error,
     jobs)
   select d.seq, m.lane, m.order_hash, ${now}, ${now}, ${now}, d.last_error, d.jobs
   from outbox_dead d join outbox_messages m on m.seq = d.seq
   where d.seq in (select value from json_each(?1))`,
  `delete from outbox_dead where seq in (select value from json_each(?1)) returning seq`,
];

const chosenSql = 'select seq from outbox_messages where id in (select value from json_each(?1))';

const idOf = (table: string): string =>
  `(select m.id from outbox_messages m where m.seq = ${table}.seq) as id`;

/** ?1: ids as JSON. */
export const retryNowSql = `
update outbox_ready set due_at_ms = ${now}, available_at_ms = ${now}
where token = 0 and available_at_ms > ${now} and seq in (${chosenSql}) returning ${idOf('outbox_ready')}`;

/** ?1: ids as JSON. Only one statement compares with the time, which passes between the statements. */
export const endSqls: readonly string[] = [
  `insert into outbox_dead (seq, attempts, died_at_ms, last_error, jobs)
   select seq, attempts, ${now}, last_error, jobs from outbox_ready
   where seq in (${chosenSql}) and (token = 0 or available_at_ms <= ${now})`,
  `delete from outbox_ready where seq in (${chosenSql}) and seq in (select seq from outbox_dead)`,
];

/** ?1: ids as JSON; ?2: who and why, as JSON. */
export const discardSql = `
update outbox_dead set discarded = ?2, died_at_ms = ${now}
where discarded is null and seq in (${chosenSql}) returning ${idOf('outbox_dead')}`;

/** ?1: sent before; ?2: limit. */
const oldSql = `select seq from outbox_sent where sent_at_ms < ?1 order by sent_at_ms, seq limit ?2`;

export const purgeSqls: readonly string[] = [
  `delete from outbox_messages where seq in (${oldSql}) returning seq`,
  `delete from outbox_sent where seq in (${oldSql})`,
];

/** ?1: sent before; ?2: limit. */
export const sentFirstSql = `
select r.*, ${historyOf('r')} from (${oldSql}) s join outbox_rows r on r.seq = s.seq order by r.sent_at_ms, r.seq`;

/** ?1: ids as JSON. */
export const forgetSqls: readonly string[] = [
  `delete from outbox_sent where seq in (
     select seq from outbox_messages where id in (select value from json_each(?1)))`,
  `delete from outbox_messages as m where m.id in (select value from json_each(?1))
     and not exists (select 1 from outbox_ready r where r.seq = m.seq)
     and not exists (select 1 from outbox_dead d where d.seq = m.seq)`,
];

export const pauseSql = `
insert into outbox_paused (integration_type, paused_at_ms, paused_by) values (?1, ${now}, ?2)
on conflict do nothing returning 1 as done`;

export const resumeSql =
  'delete from outbox_paused where integration_type = ?1 returning 1 as done';

export const pausedSql = 'select * from outbox_paused order by integration_type';
