import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { traceIndexConformance } from '../../../testing/conformance/traces/trace-index.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const schema = 'traces';
const pool = new pg.Pool({ connectionString: url, max: 2 });
const db = await openPostgres(url, { schema, connectionsMax: 4 });
after(async () => {
  await db[Symbol.asyncDispose]();
  await pool.end();
});

for (const { name, run } of traceIndexConformance(async () => db.traces)) {
  test(`traces in PostgreSQL: ${name}`, run);
}

test('a flow and old entries are found by indexes, whatever the number of events', async () => {
  await pool.query(
    `insert into ${schema}.trace_events
       select 'flow-' || n / 5, n, 'core', 'shop.order.v1-core-' || n, 0, n
       from generate_series(1, 50000) as n`,
  );
  await pool.query(`analyze ${schema}.trace_events`);
  const plan = async (sql: string): Promise<string> => {
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${sql}`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  const flow = await plan(
    `select * from ${schema}.trace_events
     where correlation_id = 'flow-77' and position > 0 order by position limit 1001`,
  );
  assert.match(flow, /Index Scan using trace_events_pkey/, flow);
  assert.doesNotMatch(flow, /Sort|Seq Scan/, flow);
  const old = await plan(
    `delete from ${schema}.trace_events where ctid = any(array(select ctid
     from ${schema}.trace_events where recorded_at_ms < 1000 order by recorded_at_ms limit 500))`,
  );
  assert.match(old, /Index Scan using trace_events_by_time/, old);
  assert.doesNotMatch(old, /Seq Scan/, old);
});
