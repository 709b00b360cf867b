import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { systemClock } from '../../../foundation/clock.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { postgresInbox } from './inbox.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 10 });
after(() => pool.end());
await pool.query('create table effects (key text not null)');
await pool.query('create schema mine');
const inbox = postgresInbox({ table: 'mine.inbox', consumer: 'invoices' });
// Migrate concurrently, like processes that start at the same time.
await Promise.all(Array.from({ length: 5 }, () => inbox.migrate(pool)));

const effect = (key: string) => (client: pg.PoolClient) =>
  client.query('insert into effects (key) values ($1)', [key]);

async function effects(key: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    'select count(*)::integer as count from effects where key = $1',
    [key],
  );
  return rows[0]?.count ?? -1;
}

/** Resolves once the backend waits for a lock of another transaction. */
async function whenBlocked(pid: number): Promise<void> {
  const untilMs = systemClock.now() + 60_000;
  for (;;) {
    const { rows } = await pool.query<{ blocked: boolean }>(
      'select cardinality(pg_blocking_pids($1)) > 0 as blocked',
      [pid],
    );
    if (rows[0]?.blocked === true) return;
    if (systemClock.now() > untilMs) assert.fail('the backend is not blocked');
  }
}

const pidOf = async (client: pg.PoolClient): Promise<number> => {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
};

test('a message has its effect once, however often it arrives', async () => {
  const first = await inbox.once(pool, 'm-1', effect('m-1'));
  assert.equal(first.kind === 'handled' && first.result.rowCount, 1);
  for (let count = 0; count < 3; count += 1) {
    assert.deepEqual(await inbox.once(pool, 'm-1', effect('m-1')), { kind: 'duplicate' });
  }
  assert.equal(await effects('m-1'), 1);
});

test('a failed effect leaves no trace, and the message can be redelivered', async () => {
  const failing = inbox.once(pool, 'm-2', async (client) => {
    await effect('m-2')(client);
    throw new Error('broken');
  });
  await assert.rejects(failing, /broken/);
  assert.equal(await effects('m-2'), 0);
  assert.equal((await inbox.once(pool, 'm-2', effect('m-2'))).kind, 'handled');
  assert.equal(await effects('m-2'), 1);
});

test('a concurrent duplicate waits for the first transaction and then has no effect, unless it was rolled back', async () => {
  for (const end of ['commit', 'rollback'] as const) {
    const [one, two] = await Promise.all([pool.connect(), pool.connect()]);
    const id = `m-3-${end}`;
    await one.query('begin');
    await two.query('begin');
    assert.equal(await inbox.isDuplicate(one, id), false);
    const pid = await pidOf(two);
    const waiting = inbox.isDuplicate(two, id);
    await whenBlocked(pid);
    await one.query(end);
    assert.equal(await waiting, end === 'commit');
    await two.query('commit');
    one.release();
    two.release();
  }
});

test('concurrent duplicates over many connections have one effect per message', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const calls = Array.from({ length: 5 }, () => ids).flat();
  const results = await Promise.all(calls.map((id) => inbox.once(pool, id, effect(id))));
  assert.equal(results.filter(({ kind }) => kind === 'handled').length, ids.length);
  for (const id of ids) assert.equal(await effects(id), 1);
});

test('a connection that breaks inside the transaction leaves no trace', async () => {
  const client = await pool.connect();
  // Use `on` instead of `once`: a second error follows, and the client has no other listener before its release.
  const died = new Promise((resolve) => client.on('error', resolve));
  await client.query('begin');
  assert.equal(await inbox.isDuplicate(client, 'm-4'), false);
  await effect('m-4')(client);
  await pool.query('select pg_terminate_backend($1)', [await pidOf(client)]);
  await died;
  client.release(true);
  assert.equal((await inbox.once(pool, 'm-4', effect('m-4'))).kind, 'handled');
  assert.equal(await effects('m-4'), 1);
});

test('every consumer handles the same message once', async () => {
  const other = postgresInbox({ table: 'mine.inbox', consumer: 'other' });
  assert.equal((await inbox.once(pool, 'm-5', effect('m-5'))).kind, 'handled');
  assert.equal((await other.once(pool, 'm-5', effect('m-5'))).kind, 'handled');
});

test('clean deletes expired ids only, in batches, through the index', async () => {
  const short = postgresInbox({ table: 'mine.inbox', consumer: 'short', ttlMs: 1_000 });
  await pool.query(
    `insert into mine.inbox (consumer, message_id, received_at)
     select 'short', 'old-' || n, now() - interval '1 hour' from generate_series(1, 2500) n`,
  );
  await pool.query(
    `insert into mine.inbox (consumer, message_id, received_at)
     values ('short', 'young', now() + interval '1 hour'), ('stays', 'old', now() - interval '1 hour')`,
  );
  await pool.query('analyze mine.inbox');
  const client = await pool.connect();
  await client.query('set enable_seqscan = off');
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    `explain select ctid from mine.inbox where consumer = 'short' and received_at < now()
     order by received_at limit 10 for update skip locked`,
  );
  client.release(true);
  assert.match(rows.map((row) => row['QUERY PLAN']).join('\n'), /inbox_received_at/);
  assert.equal(await short.clean(pool), 2_500);
  const left = await pool.query("select 1 from mine.inbox where message_id in ('young', 'old')");
  assert.equal(left.rowCount, 2);
  assert.equal((await short.once(pool, 'young', effect('young'))).kind, 'duplicate');
});

test('rejects invalid message ids, table names and times', async () => {
  for (const id of ['', 'x'.repeat(513), 'a\0b']) {
    await assert.rejects(inbox.once(pool, id, effect('x')), { code: 'PAYLOAD_INVALID' });
  }
  for (const table of ['a b', 'a"; drop table effects; --', 'a.b.c', '']) {
    assert.throws(() => postgresInbox({ table }), { code: 'CONFIG_INVALID' });
  }
  assert.throws(() => postgresInbox({ ttlMs: 0 }), { code: 'CONFIG_INVALID' });
});
