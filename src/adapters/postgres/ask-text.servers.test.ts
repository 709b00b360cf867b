import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { askText } from './ask-text.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 2 });
after(() => pool.end());

const joined = {
  name: 'joined',
  text: `select concat_ws(',', $1::text, $2::integer, $3::boolean, coalesce($4::text, 'none'))`,
};

async function prepared(statement: typeof joined, values: readonly unknown[]) {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  const ask = (others = values): Promise<string> =>
    askText(client, statement, others) ?? assert.fail('it is not prepared');
  assert.equal(askText(client, statement, values), undefined);
  await client.query({ ...statement, values: [...values] });
  return Object.assign(client, { ask, [Symbol.asyncDispose]: () => client.end() });
}

test('a statement that was prepared answers with its text, and the connection goes on', async () => {
  await using client = await prepared(joined, ['a', 1, true, null]);
  assert.equal(await client.ask(['grüße 🎉', 42, false, null]), 'grüße 🎉,42,f,none');
  assert.equal(await client.ask(['', 0, true, 'x']), ',0,t,x');
  assert.deepEqual((await client.query('select 1 as one')).rows, [{ one: 1 }]);
});

test('what the database refuses rejects with its code, and the connection goes on', async () => {
  const divided = { name: 'divided', text: 'select (10 / $1::integer)::text' };
  await using client = await prepared(divided, [5]);
  await assert.rejects(client.ask([0]), { code: '22012' });
  await assert.rejects(client.ask(['no number']), { code: '22P02' });
  assert.equal(await client.ask([2]), '5');
});

test('a time limit of the client holds, and so does the end of its connection', async () => {
  const slept = { name: 'slept', text: `select pg_sleep($1::float8)::text` };
  await using client = await prepared(slept, [0]);
  // Set late: a slow machine may take longer to prepare it.
  const settings: object = Reflect.get(client, 'connectionParameters');
  Object.assign(settings, { query_timeout: 20 });
  await assert.rejects(client.ask([30]), /timeout/);
  await using other = await prepared(slept, [0]);
  const { rows } = await other.query<{ pid: number }>('select pg_backend_pid() as pid');
  const ended = assert.rejects(other.ask([30]));
  await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
  await ended;
});

test('a pool, and a client that sends queries before the answers, are asked in the usual way', async () => {
  assert.equal(askText(pool, joined, ['a', 1, true, null]), undefined);
  const pipelined = { pipeline: true, connection: { parsedStatements: { joined: joined.text } } };
  assert.equal(askText(pipelined, joined, ['a', 1, true, null]), undefined);
});
