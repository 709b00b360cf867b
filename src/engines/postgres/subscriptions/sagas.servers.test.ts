import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sagaIndexConformance } from '../../../testing/conformance/reactors/saga-index.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const schema = 'sagas';
const pool = new pg.Pool({ connectionString: url, max: 2 });
const db = await openPostgres(url, { schema, connectionsMax: 4 });
after(async () => {
  await db[Symbol.asyncDispose]();
  await pool.end();
});

for (const { name, run } of sagaIndexConformance(async () => db.sagas)) {
  test(`sagas in PostgreSQL: ${name}`, run);
}

test('due sagas are found by an index, whatever the number of waiting sagas', async () => {
  await pool.query(
    `insert into ${schema}.saga_index
       select 'shop.many.v1-core-' || n, 'shop.many.v1', 'core', n, 'running', 1, 1,
         case when n % 2 = 0 then n end, n % 4, null
       from generate_series(1, 50000) as n`,
  );
  await pool.query(`analyze ${schema}.saga_index`);
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, timing off, summary off, costs off)
       select stream, due_at_ms from ${schema}.saga_index
       where saga = 'shop.many.v1' and shard = 2 and due_at_ms is not null
       order by due_at_ms limit 100`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  assert.match(plan, /Index Scan using saga_index_due/, plan);
  assert.doesNotMatch(plan, /Sort|Seq Scan/, plan);
});
