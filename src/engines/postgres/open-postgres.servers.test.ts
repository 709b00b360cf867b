// The handle of a database: one pool for all roles, roles without I/O before their first call, migrations and disposal.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { hasCode } from '../../foundation/error.ts';
import { createOutboxDispatcher } from '../../outbox/outbox-dispatcher.ts';
import { startSubscription } from '../../subscriptions/subscription-runner.ts';
import { subscription } from '../../subscriptions/subscription.ts';
import { eventually } from '../../testing/assertions.ts';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import { follow, newEvent } from '../../testing/conformance/store/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { openPostgres, type PostgresEngine } from './open-postgres.ts';

const { url } = await sharedPostgres();
const admin = new pg.Pool({ connectionString: url, max: 2 });
after(() => admin.end());

const roleNames = [
  'store',
  'subscriptions',
  'snapshots',
  'keyClaims',
  'readModels',
  'readModelVersions',
  'inlineAppends',
  'sagas',
  'traces',
  'outbox',
  'breakers',
  'endpointHealth',
] as const satisfies readonly (keyof PostgresEngine)[];

const stream = (id: string | number): string => `banking.account.v1-core-${id}`;
const isClosed = (error: unknown): boolean => hasCode(error, 'STORE_CLOSED');

/** A URL whose connections have this name in the server's list of connections. */
function named(name: string): string {
  const to = new URL(url);
  to.searchParams.set('application_name', name);
  return to.href;
}

async function connectionsOf(name: string): Promise<number> {
  const { rows } = await admin.query<{ count: number }>(
    'select count(*)::integer as count from pg_stat_activity where application_name = $1',
    [name],
  );
  return rows[0]?.count ?? -1;
}

async function schemasLike(pattern: string): Promise<readonly string[]> {
  const { rows } = await admin.query<{ name: string }>(
    'select nspname as name from pg_namespace where nspname like $1 order by 1',
    [pattern],
  );
  return rows.map(({ name }) => name);
}

test('a role does no I/O until its first call', async () => {
  const pool = new pg.Pool({ host: '127.0.0.1', port: 1, database: 'none' });
  await using db = await openPostgres(pool, { migrate: 'off' });
  for (const name of roleNames) assert.equal(db[name], db[name], name);
  assert.equal(pool.totalCount, 0);
  await assert.rejects(db.store.head(), (error) => hasCode(error, 'STORE_UNAVAILABLE'));
});

// Two connections are the least that can append inside a handler's transaction; a smaller part of each pool listens.
for (const connectionsMax of [2, 3, 4, 10]) {
  test(`all roles work at the same time over one pool of ${connectionsMax}`, async () => {
    const name = `one_pool_${connectionsMax}`;
    await using db = await openPostgres(named(name), {
      schema: name,
      outboxSchema: `${name}_outbox`,
      connectionsMax,
      pollIntervalMs: 60_000,
    });
    const count = 20;
    const sent: string[] = [];
    await using dispatcher = createOutboxDispatcher({
      ledger: db.outbox,
      deliver: async ({ sourceStreamId }) => void sent.push(sourceStreamId),
    });
    await dispatcher.start();
    const definition = subscription<pg.ClientBase>({
      name: 'sub:banking:all:v1',
      filter: { types: ['account.opened.v1'] },
      async handler(event, context) {
        const transaction = await context.transaction();
        const { stream: sourceStreamId, eventId: sourceEventId } = event;
        const message = newMessage({ sourceStreamId, sourceEventId });
        await db.outbox.enqueueIn(transaction, [message]);
        // Each of these needs another connection while the transaction has one.
        await db.store.append(sourceStreamId, [newEvent({ type: 'account.closed.v1' })]);
        await db.endpointHealth.update(sourceStreamId, () => ({ failures: 1 }));
        await db.breakers.open(sourceStreamId, { forMs: 1, openings: 1 });
      },
    });
    await using runner = await startSubscription(db, definition);
    await using follower = follow(db.store.subscribe({ filter: { types: ['account.closed.v1'] } }));
    await follower.caughtUp();
    const following = follower.count(count);
    const streams = Array.from({ length: count }, (_, at) => stream(at));
    await Promise.all(
      streams.map((each) => db.store.append(each, [newEvent({ type: 'account.opened.v1' })])),
    );
    const closed = (await following).map((event) => event.stream);
    await runner.whenCaughtUp();
    await eventually('all messages are sent', () => sent.length === count);
    assert.deepEqual(closed.toSorted(), streams.toSorted());
    assert.deepEqual(sent.toSorted(), streams.toSorted());
    const connections = await connectionsOf(name);
    assert.ok(connections > 0 && connections <= connectionsMax, `${connections} connections`);
  });
}

test('opening migrates the schemas of the given roles only', async () => {
  const open = async (name: string, options: Parameters<typeof openPostgres>[1]) => {
    const schemas = { schema: `${name}_store`, outboxSchema: `${name}_outbox` };
    await using db = await openPostgres(url, { ...schemas, ...options, connectionsMax: 2 });
    assert.ok(db.database.startsWith('postgres://'));
    return schemasLike(`${name}\\_%`);
  };
  assert.deepEqual(await open('only1', { roles: ['store'] }), ['only1_store']);
  assert.deepEqual(await open('only2', { roles: ['outbox'] }), ['only2_outbox']);
  assert.deepEqual(await open('only3', {}), ['only3_outbox', 'only3_store']);
  assert.deepEqual(await open('only4', { migrate: 'off' }), []);
});

test('closing the handle ends the waits of its roles, returns all clients and then ends its own pool', async () => {
  const pool = new pg.Pool({ connectionString: url, max: 6 });
  await using ending = new AsyncDisposableStack();
  ending.defer(() => pool.end());
  const name = 'closing_own';
  for (const target of [pool, named(name)]) {
    // No time passes, so that only closing can end a wait.
    const options = { schema: 'closing', outboxSchema: 'closing_outbox', clock: fakeClock() };
    const db = await openPostgres(target, options);
    const { store, outbox, subscriptions } = db;
    await store.append(stream('a'), [newEvent()]);
    await outbox.enqueueMany([newMessage()]);
    await outbox.claimDueBatch('w', 1);
    const live = store.subscribe({ after: 'end' })[Symbol.asyncIterator]();
    assert.equal((await live.next()).value?.kind, 'caughtUp');
    const next = assert.rejects(live.next(), isClosed);
    const { signal } = new AbortController();
    // The first wait only takes the lock that makes writers notify.
    await outbox.whenDue(600_000, signal);
    const due = outbox.whenDue(600_000, signal);
    await db[Symbol.asyncDispose]();
    await Promise.all([next, due]);
    await assert.rejects(store.head(), isClosed);
    assert.throws(() => db.breakers, isClosed);
    if (target === pool) {
      await eventually('all clients are returned', () => pool.totalCount === pool.idleCount);
      assert.equal((await pool.query('select 1 as one')).rowCount, 1);
    } else {
      await eventually('all connections end', async () => (await connectionsOf(name)) === 0);
      await assert.rejects(subscriptions.deadLetters.list({}), isClosed);
    }
  }
});

test('closing a single role leaves the others open', async () => {
  await using db = await openPostgres(url, { schema: 'single', outboxSchema: 'single_outbox' });
  await db.outbox.enqueueMany([newMessage()]);
  await db.store[Symbol.asyncDispose]();
  await assert.rejects(db.store.head(), isClosed);
  assert.equal((await db.outbox.claimDueBatch('w', 1)).length, 1);
  await db.outbox[Symbol.asyncDispose]();
  assert.equal(await db.endpointHealth.read('unknown'), undefined);
});

test('the roles of a database have the same identity, and another database has another one', async () => {
  const other = await sharedPostgres();
  await using db = await openPostgres(url, { migrate: 'off' });
  await using onPool = await openPostgres(admin, { migrate: 'off' });
  await using elsewhere = await openPostgres(other.url, { migrate: 'off' });
  const { host, pathname } = new URL(url);
  assert.equal(db.database, `postgres://${host}${pathname}`);
  const same = [db.subscriptions, db.outbox, onPool, onPool.subscriptions, onPool.outbox];
  for (const { database } of same) assert.equal(database, db.database);
  assert.notEqual(elsewhere.database, db.database);
});

test('an invalid URL is reported when the database is opened', async () => {
  await assert.rejects(openPostgres('postgres://a b:x', { migrate: 'off' }), (error) =>
    hasCode(error, 'STORE_UNAVAILABLE'),
  );
});
