// The trace index in an SQL database: one small row per event.

import { toPosition, toSequence } from '../store/position.ts';
import type { SqlCell, SqlDatabase } from '../store/sql-database.ts';
import type { SqlTypes } from '../subscriptions/sql/tables.ts';
import type { TraceIndex } from './trace-index.ts';

export function sqlTraceIndex({ dialect, run }: SqlDatabase): TraceIndex {
  const table = dialect.table('trace_events');
  const given = dialect.rows('?1', {
    correlation_id: 'text',
    position: 'bigint',
    tenant: 'text',
    stream: 'text',
    revision: 'bigint',
    recorded_at_ms: 'bigint',
  });
  const columns = 'correlation_id, position, tenant, stream, revision, recorded_at_ms';
  const old = `${table} where recorded_at_ms < ?1 order by recorded_at_ms limit ?2`;
  const sql = {
    add: `insert into ${table} (${columns}) select ${columns} from ${given} where true on conflict do nothing`,
    sweep: `delete from ${table} where ${dialect.isAmong('correlation_id, position', old)} returning 1`,
  };
  return {
    async add(entries) {
      if (entries.length === 0) return;
      const rows = entries.map((entry) => ({
        correlation_id: entry.correlationId,
        position: toSequence(entry.position),
        tenant: entry.tenant,
        stream: entry.stream,
        revision: entry.revision,
        recorded_at_ms: entry.recordedAtMs,
      }));
      await run([{ sql: sql.add, values: [JSON.stringify(rows)] }]);
    },
    async find(correlationId, { tenant, limit }) {
      const values: SqlCell[] = [correlationId, limit];
      const ofTenant = tenant === undefined ? '' : `and tenant = ?${values.push(tenant)}`;
      const [rows = []] = await run([
        {
          sql: `select position, tenant, stream, revision, recorded_at_ms from ${table}
            where correlation_id = ?1 ${ofTenant} order by position limit ?2`,
          values,
        },
      ]);
      return rows.map(([position, owner, stream, revision, recordedAtMs]) => ({
        correlationId,
        position: toPosition(Number(position)),
        tenant: String(owner),
        stream: String(stream),
        revision: Number(revision),
        recordedAtMs: Number(recordedAtMs),
      }));
    },
    async sweep(recordedBeforeMs, limit) {
      const values = [recordedBeforeMs, limit];
      const [rows = []] = await run([{ sql: sql.sweep, values, isHousekeeping: true }]);
      return rows.length;
    },
  };
}

/** For the migrations of every SQL engine. */
export function traceTables({ at, key, bigint, byKey }: SqlTypes): string {
  return `
create table ${at}trace_events (
  correlation_id ${key} not null,
  position ${bigint} not null,
  tenant ${key} not null,
  stream ${key} not null,
  revision ${bigint} not null,
  recorded_at_ms ${bigint} not null,
  primary key (correlation_id, position)
)${byKey};
-- For deleting old entries; inserts only append to it.
create index trace_events_by_time on ${at}trace_events (recorded_at_ms);
`;
}
