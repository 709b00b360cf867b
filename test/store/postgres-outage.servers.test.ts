// PostgreSQL is killed, stopped or paused: no acknowledged event is lost, and the same store works again
// after the outage.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { lockClass } from '../../src/engines/postgres/connection/schema.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { assertNoViolations, checkDelivered } from '../../src/testing/history.ts';
import { startPostgres, type PostgresServer } from '../../src/testing/servers/postgres-server.ts';
import { connect, terminate } from './connect.ts';
import { follow, startReader } from './followers.ts';
import {
  assertOutage,
  inTime,
  newEvent,
  newEvents,
  readLocations,
  rejection,
  retryDuringOutage,
  soakMinutes,
  streamName,
  until,
} from './rig.ts';

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ fsync: true });
});
after(() => server[Symbol.asyncDispose]());

/** While the WAL writer is stopped, only synchronous commits reach the disk. */
async function stopWalWriter(url: string): Promise<void> {
  await using admin = await connect(url);
  const { rows } = await admin.query<{ pid: number }>(
    `select pid from pg_stat_activity where backend_type = 'walwriter'`,
  );
  process.kill(rows[0]?.pid ?? 0, 'SIGSTOP');
}

test('a reader that has passed the numbers of a rolled-back append sees the events after a crash', async () => {
  const url = await server.createDatabase();
  await using db = await openPostgres(url);
  const { store } = db;
  await using follower = follow(store);
  await store.append(streamName('a'), newEvents('before', 1));
  await follower.has('before-0');
  await stopWalWriter(url);
  await using client = await connect(url);
  await client.query('begin');
  await store.append(streamName('b'), newEvents('gone', 500), { transaction: client });
  await client.query('rollback');
  const head = await store.head();
  const checkpoints: string[] = [];
  for await (const item of store.subscribe()) {
    checkpoints.push(item.position);
    if (item.kind === 'caughtUp') break;
  }

  await server.kill();
  await server.start();
  const { position } = await retryDuringOutage(() =>
    store.append(streamName('a'), newEvents('after', 1)),
  );
  for (const checkpoint of [head, ...checkpoints]) {
    assert.ok(checkpoint < position, `${checkpoint} was returned before ${position}`);
  }
  await follower.has('after-0');
  assertNoViolations(
    checkDelivered(await readLocations(store), follower.delivered),
    'after a crash',
  );
});

test('an acknowledged append is on disk, even if the database does not commit synchronously', async () => {
  const url = await server.createDatabase();
  {
    await using admin = await connect(url);
    await admin.query(`do $$ begin
      execute format('alter database %I set synchronous_commit = off', current_database()); end $$`);
  }
  await using db = await openPostgres(url);
  const { store } = db;
  await store.append(streamName('a'), newEvents('first', 1));
  await stopWalWriter(url);
  await store.append(streamName('a'), newEvents('second', 1));
  await using client = await connect(url);
  await client.query('begin');
  await store.append(streamName('a'), newEvents('third', 1), { transaction: client });
  await client.query('commit');
  await server.kill();
  await server.start();
  const locations = await retryDuringOutage(() => readLocations(store));
  assert.deepEqual(
    locations.map(({ eventId }) => eventId),
    ['first-0', 'second-0', 'third-0'],
  );
});

for (const how of ['stop', 'kill'] as const) {
  test(`a store and its subscriptions continue after an outage of the server (${how})`, async () => {
    const url = await server.createDatabase();
    await using db = await openPostgres(url);
    const { store } = db;
    await using follower = follow(store, { pageSize: 2 });
    await using filtered = follow(store, { filter: { types: ['item.changed.v1'] } });
    await store.append(streamName('a'), newEvents('before', 3));
    await Promise.all([follower.has('before-2'), filtered.caughtUp()]);

    const inFlight = Array.from({ length: 30 }, (_, index) =>
      store.append(streamName(index), newEvents(`flight-${index}`, 2)),
    );
    await server[how]();
    const outcomes = await inTime('every append settles', Promise.allSettled(inFlight));
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assertOutage(outcome.reason);
    }
    assertOutage(await rejection(store.append(streamName('a'), [newEvent('never')])));
    assertOutage(await rejection(store.readStream(streamName('a')).toArray()));
    assertOutage(await rejection(store.readAll().toArray()));
    assertOutage(await rejection(store.streamInfo(streamName('a'))));

    await server.start();
    const marker = newEvent('marker', { type: 'item.changed.v1' });
    await retryDuringOutage(() => store.append(streamName('a'), [marker]));
    await Promise.all([follower.has('marker'), filtered.has('marker')]);
    const stored = await readLocations(store);
    assertNoViolations(checkDelivered(stored, follower.delivered), how);
    const ids = new Set(stored.map(({ eventId }) => eventId));
    for (const [index, outcome] of outcomes.entries()) {
      const found = [0, 1].filter((each) => ids.has(`flight-${index}-${each}`)).length;
      assert.ok(found === 2 || (found === 0 && outcome.status === 'rejected'), `append ${index}`);
    }
    assert.ok(!ids.has('never-0'));
  });
}

test('a process that only waits for events survives an outage', async () => {
  const url = await server.createDatabase();
  await using db = await openPostgres(url);
  const { store } = db;
  await using reader = startReader({
    engine: 'postgres',
    url,
    subscriptions: [{ name: 'all', pageSize: 10, filter: {} }],
  });
  await reader.follower('all').caughtUp();
  await server.kill();
  // The pause is long enough for the reader to notice the outage.
  assertOutage(await rejection(store.head()));
  await server.start();
  await retryDuringOutage(() => store.append(streamName('a'), [newEvent('marker')]));
  await reader.follower('all').has('marker');
});

test('appends wait while the server is paused, and do not fail', async () => {
  const url = await server.createDatabase();
  await using db = await openPostgres(url);
  const { store } = db;
  await using follower = follow(store);
  await follower.caughtUp();
  await store.append(streamName('a'), newEvents('before', 1));
  const pauseMs = soakMinutes > 0 ? 2_000 : 500;
  const pausedAt = performance.now();
  server.pause();
  let appends: Promise<unknown>;
  try {
    appends = Promise.all(
      [0, 1, 2].map((index) => store.append(streamName(index), newEvents(`during-${index}`, 1))),
    );
    await until('the pause is over', () => performance.now() - pausedAt > pauseMs);
  } finally {
    server.resume();
  }
  await inTime('the appends of the pause', appends);
  await follower.has('during-2-0');
  assertNoViolations(
    checkDelivered(await readLocations(store), follower.delivered),
    'after a pause',
  );
});

test('closing settles every append that is in progress, and acknowledged appends are stored', async () => {
  const url = await server.createDatabase();
  const db = await openPostgres(url, { connectionsMax: 3 });
  const { store } = db;
  const appends = Array.from({ length: 200 }, (_, index) =>
    store.append(streamName(index % 7), [newEvent(`e${index}`)]),
  );
  const settled = Promise.allSettled(appends);
  await inTime('closing', db[Symbol.asyncDispose]());
  const outcomes = await inTime('every append settles', settled);
  await using again = await openPostgres(url);
  const ids = new Set((await readLocations(again.store)).map(({ eventId }) => eventId));
  for (const [index, outcome] of outcomes.entries()) {
    assert.equal(ids.has(`e${index}`), outcome.status === 'fulfilled', `append ${index}`);
    if (outcome.status === 'rejected') assert.ok(hasCode(outcome.reason, 'STORE_CLOSED'));
  }
});

test('closing settles every read that is in progress, even if there are more reads than connections', async () => {
  const url = await server.createDatabase();
  const db = await openPostgres(url, { connectionsMax: 2 });
  const { store } = db;
  await store.append(streamName('a'), newEvents('a', 100));
  const reads = Array.from({ length: 30 }, () => store.readStream(streamName('a')).toArray());
  const settled = Promise.allSettled(reads);
  await db[Symbol.asyncDispose]();
  for (const outcome of await inTime('every read settles', settled, 60_000)) {
    if (outcome.status === 'fulfilled') assert.equal(outcome.value.length, 100);
    else assert.ok(hasCode(outcome.reason, 'STORE_CLOSED'), String(outcome.reason));
  }
});

test('closing ends a waiting subscription and one whose consumer is busy', async () => {
  const url = await server.createDatabase();
  const db = await openPostgres(url);
  const { store } = db;
  const waiting = store.subscribe()[Symbol.asyncIterator]();
  const busy = store.subscribe()[Symbol.asyncIterator]();
  assert.equal((await waiting.next()).value?.kind, 'caughtUp');
  assert.equal((await busy.next()).value?.kind, 'caughtUp');
  const next = rejection(waiting.next());
  await db[Symbol.asyncDispose]();
  assert.ok(hasCode(await inTime('the end of the waiting subscription', next), 'STORE_CLOSED'));
  const late = await inTime('the end of the busy subscription', rejection(busy.next()));
  assert.ok(hasCode(late, 'STORE_CLOSED'));
});

test('closing works while the server is down', async () => {
  const url = await server.createDatabase();
  const db = await openPostgres(url);
  const { store } = db;
  const follower = follow(store);
  await follower.caughtUp();
  await server.kill();
  const append = rejection(store.append(streamName('a'), [newEvent('never')]));
  await inTime('closing', db[Symbol.asyncDispose]());
  const error = await append;
  // The code depends on whether the append had reached the database when the store was closed.
  assert.ok(hasCode(error, 'STORE_UNAVAILABLE') || hasCode(error, 'STORE_CLOSED'), String(error));
  await follower[Symbol.asyncDispose]();
  await server.start();
});

test('opening fails with a typed error while the server is down, and when the connection is lost during it', async () => {
  const url = await server.createDatabase();
  await using admin = await connect(url);
  await admin.query('select pg_advisory_lock($1, 2)', [lockClass('millrace') + 1]);
  const opening = rejection(openPostgres(url));
  const migrating = `select pid from pg_locks where locktype = 'advisory' and not granted`;
  await until(
    'the migration waits for its lock',
    async () => (await terminate(admin, migrating)) > 0,
  );
  assertOutage(await inTime('opening', opening));
  await server.kill();
  assertOutage(await inTime('opening', rejection(openPostgres(url))));
  await server.start();
  const db = await openPostgres(url);
  assert.deepEqual(await readLocations(db.store), []);
  await db[Symbol.asyncDispose]();
});
