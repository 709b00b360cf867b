// The storage of subscriptions on an SQL database, except the transactions for handlers.

import type { SubscriptionStorage, ProcessedEvents } from '../subscription-storage.ts';
import { sqlCheckpoints } from './checkpoints.ts';
import type { SqlDatabase, SqlDialect } from '../../store/sql-database.ts';
import { sqlDeadLetters } from './dead-letters.ts';
import { sqlLeases, sqlTokens } from './leases.ts';
import { settling, sqlSettlements } from './settlement.ts';
import { sqlWaiting } from './waiting.ts';

export function sqlSubscriptionStorage(database: SqlDatabase): Omit<SubscriptionStorage, 'begin'> {
  const settlements = sqlSettlements(database.dialect);
  return {
    capabilities: { transactions: true, durable: true, crossProcess: true },
    checkpoints: sqlCheckpoints(database),
    processed: sqlProcessed(database),
    deadLetters: sqlDeadLetters(database),
    waiting: sqlWaiting(database),
    leases: sqlLeases(database),
    tokens: sqlTokens(database),
    settle: (fence, settlement) =>
      settling(fence, () => database.run(settlements.statements(fence, settlement))),
  };
}

function sqlProcessed({ dialect, run }: SqlDatabase): ProcessedEvents {
  const table = dialect.table('processed_events');
  const now = dialect.nowMs;
  const sql = {
    // An expired claim is free, whether it was confirmed or not.
    claim: `insert into ${table} as p (event_id, handler_name, token, leased_until_ms, expires_at_ms)
      values (?1, ?2, 1, ${now} + ?3, ${now} + ?4)
      on conflict (event_id, handler_name) do update set token = p.token + 1,
        leased_until_ms = excluded.leased_until_ms, expires_at_ms = excluded.expires_at_ms,
        processed_at_ms = null
      where (p.processed_at_ms is null and p.leased_until_ms <= ${now}) or p.expires_at_ms <= ${now}
      returning token`,
    state: `select processed_at_ms, leased_until_ms - ${now} from ${table}
      where event_id = ?1 and handler_name = ?2`,
    confirm: `update ${table} set processed_at_ms = ${now}
      where event_id = ?1 and handler_name = ?2 and token = ?3 returning 1`,
    release: `update ${table} set leased_until_ms = 0
      where event_id = ?1 and handler_name = ?2 and token = ?3 and processed_at_ms is null returning 1`,
    sweep: sweepSql(dialect),
  };
  return {
    async claim({ eventId, handler }, { leaseMs, ttlMs }) {
      const [claimed = [], current = []] = await run([
        { sql: sql.claim, values: [eventId, handler, leaseMs, ttlMs] },
        { sql: sql.state, values: [eventId, handler] },
      ]);
      const token = claimed[0]?.[0];
      if (token !== undefined) return { kind: 'claimed', token: Number(token) };
      const [processedAt, leftMs] = current[0] ?? [null, 0];
      if (processedAt !== null) return { kind: 'done' };
      return { kind: 'busy', retryInMs: Math.max(1, Number(leftMs)) };
    },
    async confirm({ eventId, handler }, token) {
      const [rows = []] = await run([{ sql: sql.confirm, values: [eventId, handler, token] }]);
      return rows.length > 0;
    },
    async release({ eventId, handler }, token) {
      const [rows = []] = await run([{ sql: sql.release, values: [eventId, handler, token] }]);
      return rows.length > 0;
    },
    async sweep(limit) {
      const [rows = []] = await run([{ sql: sql.sweep, values: [limit], isHousekeeping: true }]);
      return rows.length;
    },
  };
}

/** Deletes by the index on the expiry time, up to the limit. */
export function sweepSql({ table, nowMs, isAmong }: SqlDialect): string {
  const processed = table('processed_events');
  // In a subquery the time is a single value, so the index can be used.
  const first = `${processed} where expires_at_ms <= (select ${nowMs}) order by expires_at_ms limit ?1`;
  return `delete from ${processed} where ${isAmong('event_id, handler_name', first)} returning 1`;
}
