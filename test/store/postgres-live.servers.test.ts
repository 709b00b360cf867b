// Live reading from PostgreSQL while connections are cut: subscriptions continue and miss nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { lockClass } from '../../src/engines/postgres/connection/schema.ts';
import { assertNoViolations, checkDelivered } from '../../src/testing/history.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect, terminate } from './connect.ts';
import { follow } from './followers.ts';
import { newEvent, newEvents, readLocations, streamName, until } from './rig.ts';

/** So long that only a notification or a lost connection can wake a reader in time. */
const pollIntervalMs = 600_000;

/** The listening connection holds this lock. */
const listeners = `select pid from pg_locks where locktype = 'advisory' and granted
  and classid = ${lockClass('millrace') + 1} and objid = 1
  and database = (select oid from pg_database where datname = current_database())`;
const storeConnections = `select pid from pg_stat_activity
  where datname = current_database() and application_name = 'millrace'`;

async function whenListening(admin: pg.Client): Promise<void> {
  await until('the reader listens', async () => (await admin.query(listeners)).rows.length > 0);
}

test('subscribers miss no event while connections are cut repeatedly', async () => {
  const { url } = await sharedPostgres();
  await using writing = await openPostgres(url, { connectionsMax: 3 });
  await using reading = await openPostgres(url, { connectionsMax: 3, pollIntervalMs });
  await using admin = await connect(url);
  await using all = follow(reading.store, { pageSize: 3 });
  await using some = follow(reading.store, {
    pageSize: 2,
    filter: { streamPrefixes: [streamName(1)] },
  });
  await Promise.all([all.caughtUp(), some.caughtUp()]);

  let cut = 0;
  for (let round = 0; round < 15; round += 1) {
    const appends = [0, 1, 2, 3].map((index) =>
      // The retries of the store are enough, because the server stays up.
      writing.store.append(streamName(index), newEvents(`${round}-${index}`, 5)),
    );
    cut += await terminate(admin, storeConnections);
    await Promise.all(appends);
  }
  await writing.store.append(streamName(1), [newEvent('marker')]);
  await Promise.all([all.has('marker'), some.has('marker')]);

  assert.ok(cut > 15, `only ${cut} connections were cut`);
  const stored = await readLocations(reading.store);
  assert.equal(stored.length, 15 * 4 * 5 + 1);
  assertNoViolations(checkDelivered(stored, all.delivered), 'all');
  assertNoViolations(
    checkDelivered(
      stored.filter(({ stream }) => stream === streamName(1)),
      some.delivered,
    ),
    'some',
  );
});

test('a subscription to one stream resumes at its position after its connection was cut', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { pollIntervalMs });
  const { store } = db;
  await using admin = await connect(url);
  const stream = streamName('one');
  const revisions: number[] = [];
  const leaving = new AbortController();
  const running = (async () => {
    const options = { pageSize: 2, signal: leaving.signal };
    for await (const item of store.subscribeToStream(stream, options)) {
      if (item.kind === 'events') revisions.push(...item.events.map(({ revision }) => revision));
    }
  })();
  for (let round = 1; round <= 5; round += 1) {
    const append = store.append(stream, newEvents(`${round}`, 4));
    await terminate(admin, storeConnections);
    await append;
    await until('the events of the round are delivered', () => revisions.length >= 4 * round);
  }
  assert.deepEqual(revisions, [...revisions.keys()]);
  leaving.abort();
  await running;
});

test('a cut listener listens again, and no event waits for the poll', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { pollIntervalMs });
  const { store } = db;
  await using other = await openPostgres(url);
  await using admin = await connect(url);
  await using follower = follow(store);
  await follower.caughtUp();
  for (let round = 0; round < 3; round += 1) {
    await whenListening(admin);
    assert.equal(await terminate(admin, listeners), 1);
    await other.store.append(streamName('a'), [newEvent(`cut-${round}`)]);
    await follower.has(`cut-${round}`);
    await whenListening(admin);
    await other.store.append(streamName('a'), [newEvent(`listening-${round}`)]);
    await follower.has(`listening-${round}`);
  }
});

test('polling delivers events whose notifications are lost', async () => {
  const { url } = await sharedPostgres();
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  // A pooler that assigns connections per transaction loses notifications like this.
  pool.on('connect', (client) => {
    const emit = client.emit.bind(client) as (name: string, ...rest: unknown[]) => boolean;
    const muted = (name: string, ...rest: unknown[]): boolean =>
      name !== 'notification' && emit(name, ...rest);
    Object.assign(client, { emit: muted });
  });
  try {
    await using db = await openPostgres(pool, { pollIntervalMs: 20 });
    const { store } = db;
    await using other = await openPostgres(url);
    await using admin = await connect(url);
    await using follower = follow(store);
    await whenListening(admin);
    for (const name of ['one', 'two']) {
      await other.store.append(streamName('a'), [newEvent(name)]);
      await follower.has(name);
    }
  } finally {
    await pool.end();
  }
});

test('a pool with one connection reads live without a listening connection', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { connectionsMax: 1 });
  const { store } = db;
  await using other = await openPostgres(url);
  await using follower = follow(store);
  await follower.caughtUp();
  await other.store.append(streamName('a'), [newEvent('one')]);
  await follower.has('one');
  await store.append(streamName('a'), [newEvent('two')]);
  await follower.has('two');
});

test('live reading continues while another session holds the listening lock', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { pollIntervalMs });
  const { store } = db;
  await using other = await openPostgres(url);
  await using admin = await connect(url);
  await admin.query('select pg_advisory_lock($1, 1)', [lockClass('millrace') + 1]);
  await using follower = follow(store);
  await follower.caughtUp();
  await other.store.append(streamName('a'), [newEvent('one')]);
  await follower.has('one');
  await admin.query('select pg_advisory_unlock($1, 1)', [lockClass('millrace') + 1]);
  await whenListening(admin);
  await other.store.append(streamName('a'), [newEvent('two')]);
  await follower.has('two');
});

test('an append notifies readers in other processes without waiting for the poll', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { pollIntervalMs });
  const { store } = db;
  await using other = await openPostgres(url);
  await using admin = await connect(url);
  await using follower = follow(store);
  await follower.caughtUp();
  await whenListening(admin);
  // The first append is made by a store, the second within a transaction of the caller.
  await other.store.append(streamName('a'), [newEvent('one')]);
  await follower.has('one');
  await admin.query('begin');
  await other.store.append(streamName('a'), [newEvent('two')], { transaction: admin });
  await admin.query('commit');
  await follower.has('two');
});
