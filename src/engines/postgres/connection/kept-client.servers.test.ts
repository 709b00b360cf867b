// The kept client yields to other users of the pool and survives broken connections.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import pg from 'pg';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { createKeptClient } from './kept-client.ts';
import { checkOut, type Queryable } from './connection.ts';

async function openPool(max: number): Promise<pg.Pool & AsyncDisposable> {
  const { url } = await sharedPostgres();
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on('error', () => undefined);
  return Object.assign(pool, { [Symbol.asyncDispose]: () => pool.end() });
}

/** So long that a busy machine does not release the client in the middle of a test. */
const idleMs = 600_000;

const backend = async (on: Queryable): Promise<number> => {
  const { rows } = await on.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
};

test('consecutive queries share one connection, and the pool gets it back when they stop', async () => {
  await using pool = await openPool(4);
  const keptClient = createKeptClient(pool);
  const first = await keptClient.use(backend);
  assert.equal(pool.idleCount, 0);
  assert.equal(await keptClient.use(backend), first);
  await once(pool, 'release');
  assert.equal(pool.idleCount, 1);
  assert.equal(await keptClient.use(backend), first);
  keptClient.release();
  assert.equal(pool.idleCount, 1);
});

test('a concurrent query uses another connection of the pool', async () => {
  await using pool = await openPool(4);
  const keptClient = createKeptClient(pool, idleMs);
  const [one, two] = await Promise.all([keptClient.use(backend), keptClient.use(backend)]);
  assert.notEqual(one, two);
  keptClient.release();
});

test('a caller that waits for a connection gets the kept one', async () => {
  await using pool = await openPool(4);
  const keptClient = createKeptClient(pool, idleMs);
  await keptClient.use(backend);
  const others = await Promise.all([checkOut(pool), checkOut(pool), checkOut(pool)]);
  const waiting = checkOut(pool);
  await keptClient.use(backend);
  (await waiting).release();
  for (const other of others) other.release();
});

test('a small pool has no kept client', async () => {
  await using pool = await openPool(3);
  const keptClient = createKeptClient(pool, idleMs);
  await keptClient.use(backend);
  assert.equal(pool.idleCount, 1);
});

test('a reused connection that the server terminates is replaced without an error', async () => {
  await using pool = await openPool(4);
  const keptClient = createKeptClient(pool, idleMs);
  const first = await keptClient.use(backend);
  const removed = once(pool, 'remove');
  await pool.query('select pg_terminate_backend($1)', [first]);
  await removed;
  assert.notEqual(await keptClient.use(backend), first);
  keptClient.release();
});

test('a failed query closes its connection', async () => {
  await using pool = await openPool(4);
  const keptClient = createKeptClient(pool, idleMs);
  const first = await keptClient.use(backend);
  await assert.rejects(
    keptClient.use((on) => on.query('select 1/0')),
    { code: '22012' },
  );
  assert.equal(pool.totalCount, 0);
  assert.notEqual(await keptClient.use(backend), first);
  keptClient.release();
});
