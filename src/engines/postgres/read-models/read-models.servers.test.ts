import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { readModelsConformance } from '../../../testing/conformance/projections/read-models.ts';
import { pageSql } from '../../../projections/sql/read-models.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { dialectIn } from '../connection/database.ts';
import { openPostgres } from '../open-postgres.ts';

const { url } = await sharedPostgres();
const schema = 'read_models';
const db = await openPostgres(url, { schema, connectionsMax: 6 });
const second = await openPostgres(url, { schema, connectionsMax: 3 });
const pool = new pg.Pool({ connectionString: url, max: 1 });
after(async () => {
  await pool.end();
  await db[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

for (const { name, skip, run } of readModelsConformance({
  capabilities: db.readModels.capabilities,
  open: async () => db.readModels,
  second: async () => second.readModels,
  async damage(model, json) {
    const number = `(select id from ${schema}.read_models where name = $2)`;
    const sql = `update ${schema}.read_documents set entries = $1 where model = ${number}`;
    await pool.query(sql, [json, model]);
  },
  async closed() {
    await using closed = await openPostgres(url, { schema, connectionsMax: 1 });
    return closed.readModels;
  },
})) {
  test(`read models in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}

test('a page is read from its index without sorting, whatever the number of pages', async () => {
  await pool.query(`insert into ${schema}.read_models (name) values ('collab.long.v1')`);
  const number = `(select id from ${schema}.read_models where name = 'collab.long.v1')`;
  const all = 'from generate_series(1, 50000) as n';
  const name = `case when n <= 100 then 'chat:short' else 'chat:long' end`;
  await pool.query(
    `insert into ${schema}.read_documents (model, tenant, id, stream, revision, document, entries)
       select ${number}, 'core', 'm-' || n, 's', n, '{}', '{}' ${all}`,
  );
  await pool.query(
    `insert into ${schema}.read_ranges (model, tenant, name, score, id)
       select ${number}, 'core', ${name}, n, 'm-' || n ${all}`,
  );
  await pool.query(
    `insert into ${schema}.read_sets (model, tenant, name, id)
       select ${number}, 'core', ${name}, 'm-' || n ${all}`,
  );
  await pool.query(`analyze ${schema}.read_documents, ${schema}.read_ranges, ${schema}.read_sets`);
  const { members, ascending, descending } = pageSql(dialectIn(schema));
  for (const chat of ['chat:short', 'chat:long']) {
    const named = ['collab.long.v1', 'core', chat];
    for (const [sql, values, index] of [
      [members, [...named, '', 51], 'Scan using read_sets_pkey'],
      [ascending, [...named, -1e9, '', 1e9, 51], 'Scan using read_ranges_pkey'],
      [descending, [...named, 1e9, '~', -1e9, 51], 'Scan Backward using read_ranges_pkey'],
    ] as const) {
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, timing off, summary off, costs off) ${sql.replaceAll('?', '$')}`,
        [...values],
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.ok(plan.includes(index), plan);
      assert.match(plan, /Index Scan using read_documents_pkey/, plan);
      assert.doesNotMatch(plan, /rows=(5[2-9]|[6-9]\d|\d{3,})\b/, plan);
    }
  }
});
