// The saga index in an SQL database: one row per saga, in the event database.

import type { SqlCell, SqlCells, SqlDatabase } from '../store/sql-database.ts';
import type { SqlTypes } from '../subscriptions/sql/tables.ts';
import { sagaListLimit, type SagaEntry, type SagaIndex } from './saga-index.ts';
import type { SagaStatus } from './saga-state.ts';

export function sqlSagaIndex({ dialect, run }: SqlDatabase): SagaIndex {
  const table = dialect.table('saga_index');
  const columns = `stream, saga, tenant, saga_key, status, revision, updated_at_ms, due_at_ms, shard, reason`;
  const sql = {
    put: `insert into ${table} as s (${columns})
      values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
      on conflict (stream) do update set status = excluded.status, revision = excluded.revision,
        updated_at_ms = excluded.updated_at_ms, due_at_ms = excluded.due_at_ms,
        shard = excluded.shard, reason = excluded.reason
      where s.revision < excluded.revision`,
    // One query per shard: each reads a sorted range of the index.
    upcoming: `select stream, due_at_ms from ${table}
      where saga = ?1 and shard = ?2 and due_at_ms is not null order by due_at_ms limit ?3`,
  };
  return {
    async put(entry) {
      const { stream, saga, tenant, key, status, revision, updatedAtMs, shard } = entry;
      const { dueAtMs = null, reason = null } = entry;
      const first = [stream, saga, tenant, key, status, revision, updatedAtMs];
      await run([{ sql: sql.put, values: [...first, dueAtMs, shard, reason] }]);
    },
    async upcoming({ saga, shards, limit }) {
      if (shards.length === 0) return [];
      const pages = await run(
        shards.map((shard) => ({ sql: sql.upcoming, values: [saga, shard, limit] })),
      );
      return pages
        .flat()
        .map(([stream, dueAtMs]) => ({ stream: String(stream), dueAtMs: Number(dueAtMs) }))
        .toSorted((a, b) => a.dueAtMs - b.dueAtMs)
        .slice(0, limit);
    },
    async list({ saga, status, tenant, after = '', limit = sagaListLimit }) {
      // All streams of a saga start with its category, so rows that sort before it are skipped.
      const values: SqlCell[] = [saga !== undefined && saga > after ? saga : after, limit];
      const equals = Object.entries({ saga, status, tenant }).flatMap(([column, value]) =>
        value === undefined ? [] : [`and ${column} = ?${values.push(value)}`],
      );
      const [rows = []] = await run([
        {
          sql: `select ${columns} from ${table} where stream > ?1 ${equals.join(' ')}
            order by stream limit ?2`,
          values,
        },
      ]);
      return rows.map(toEntry);
    },
  };
}

/** For the migrations of every SQL engine. */
export function sagaTables({ at, key, bigint, byKey }: SqlTypes): string {
  return `
create table ${at}saga_index (
  stream ${key} primary key,
  saga ${key} not null,
  tenant ${key} not null,
  saga_key ${key} not null,
  status ${key} not null,
  revision ${bigint} not null,
  updated_at_ms ${bigint} not null,
  due_at_ms ${bigint},
  shard integer not null,
  reason text
)${byKey};
create index saga_index_due on ${at}saga_index (saga, shard, due_at_ms) where due_at_ms is not null;
create index saga_index_by_status on ${at}saga_index (saga, status, stream);
`;
}

function toEntry(row: SqlCells): SagaEntry {
  const [stream, saga, tenant, key, status, revision, updatedAtMs, dueAtMs, shard, reason] = row;
  return {
    stream: String(stream),
    saga: String(saga),
    tenant: String(tenant),
    key: String(key),
    status: String(status) as SagaStatus,
    revision: Number(revision),
    updatedAtMs: Number(updatedAtMs),
    dueAtMs: dueAtMs === null || dueAtMs === undefined ? undefined : Number(dueAtMs),
    shard: Number(shard),
    reason: reason === null || reason === undefined ? undefined : String(reason),
  };
}
