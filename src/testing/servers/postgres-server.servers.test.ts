import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse } from './converse.ts';
import { findProgram } from './find-program.ts';
import { postgresFolders, startPostgres } from './postgres-server.ts';
import { isRunning } from './process-tree.ts';
import { runProgram } from './run-program.ts';

async function query(url: string, sql: string): Promise<string> {
  const program = findProgram({
    name: 'psql',
    debianPackage: 'postgresql',
    folders: postgresFolders(),
  });
  const args = ['--no-psqlrc', '-v', 'ON_ERROR_STOP=1', '-qAtc', sql, url];
  return (await runProgram({ program, args, folder: '/' })).trim();
}

test('a PostgreSQL server responds to queries in separate databases', async () => {
  await using postgres = await startPostgres({ settings: { max_connections: '17' } });
  assert.notEqual(postgres.port, 5432);
  assert.equal(await query(postgres.url, 'show max_connections'), '17');
  assert.equal(await query(postgres.url, 'show fsync'), 'off');
  assert.equal(await query(postgres.url, "select upper('é')"), 'É');

  const [one, other] = await Promise.all([
    postgres.createDatabase(),
    postgres.createDatabase('My "own" name'),
  ]);
  await query(one, 'create table only_here (id int)');
  assert.equal(await query(one, "select to_regclass('only_here')"), 'only_here');
  assert.equal(await query(other, "select to_regclass('only_here')"), '');
  assert.equal(await query(other, 'select current_database()'), 'My "own" name');
});

test('a commit survives a kill of PostgreSQL, an open transaction does not', async (t) => {
  await using postgres = await startPostgres({ fsync: true });
  const { port, url } = postgres;
  assert.equal(await query(url, 'show fsync'), 'on');
  await query(url, 'create table numbers as select 1 as n');

  // A backend that is busy, not waiting, would go on for a while if only its parent were killed.
  const busy = query(
    url,
    'begin; insert into numbers values (2); select count(*) from generate_series(1, 1e12)',
  );
  const lost = assert.rejects(busy, { code: 'SERVER_UNAVAILABLE' });
  const backend = await t.waitFor(
    async () => {
      const sql = `select pid from pg_stat_activity
        where state = 'active' and query like 'begin%' and pid <> pg_backend_pid()`;
      const pid = await query(url, sql);
      assert.notEqual(pid, '');
      return Number(pid);
    },
    { timeout: 60_000 },
  );

  await postgres.kill();
  await lost;
  assert.equal(isRunning(backend), false);
  await assert.rejects(converse(port, []), { code: 'ECONNREFUSED' });

  await postgres.start();
  assert.equal(await query(url, 'select sum(n) from numbers'), '1');
  assert.match(postgres.log(), /automatic recovery in progress/);
});

test('stopping PostgreSQL closes its sessions, and it restarts cleanly', async () => {
  await using postgres = await startPostgres();
  const session = assert.rejects(query(postgres.url, 'select pg_sleep(600)'));
  await query(postgres.url, 'create table numbers as select 1 as n');
  await postgres.stop();
  await session;
  await postgres.start();
  assert.equal(await query(postgres.url, 'select n from numbers'), '1');
  assert.doesNotMatch(postgres.log(), /automatic recovery in progress/);
});

test('cancelling a start of PostgreSQL during setup stops it immediately', async () => {
  const signal = AbortSignal.timeout(100);
  await assert.rejects(startPostgres({ signal }), { code: 'ABORTED' });
});
