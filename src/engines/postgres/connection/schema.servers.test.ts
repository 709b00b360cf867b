import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { numberMigrations, runMigrations } from './schema.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 4 });
after(() => pool.end());

const all = [
  { title: 'first', sql: 'create table {schema}.first (id integer)' },
  { title: 'second', sql: 'alter table {schema}.first add column name text' },
];

async function migrate(schema: string, migrations = all): Promise<readonly string[]> {
  const client = await pool.connect();
  try {
    const applied = await runMigrations(client, schema, numberMigrations(migrations, schema));
    return applied.map(({ title }) => title);
  } finally {
    client.release();
  }
}

test('concurrent processes run each migration once', async () => {
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate('together')));
  assert.deepEqual(applied.flat(), ['first', 'second']);
});

test('an existing schema gets the pending migrations only', async () => {
  assert.deepEqual(await migrate('pending', all.slice(0, 1)), ['first']);
  assert.deepEqual(await migrate('pending'), ['second']);
  assert.deepEqual(await migrate('pending'), []);
  await pool.query(`insert into pending.first (id, name) values (1, 'one')`);
});

test('rejects a schema of a newer version', async () => {
  await migrate('newer');
  await assert.rejects(migrate('newer', all.slice(0, 1)), { code: 'CONFIG_INVALID' });
});

test('a failed migration changes nothing', async () => {
  const broken = [...all, { title: 'third', sql: 'create table {schema}.third (id no_type)' }];
  await assert.rejects(migrate('broken', broken), /no_type/);
  assert.deepEqual(await migrate('broken'), ['first', 'second']);
});
