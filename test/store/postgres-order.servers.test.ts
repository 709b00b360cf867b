// The order of events in PostgreSQL (invariant 3): readers skip nothing, and do not wait for unrelated transactions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { lockClass } from '../../src/engines/postgres/connection/schema.ts';
import { subjectHeader } from '../../src/store/index.ts';
import { assertNoViolations, checkDelivered, checkStored } from '../../src/testing/history.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from './connect.ts';
import { follow, startReader } from './followers.ts';
import { runWriters, startWriter } from './kill-writers.ts';
import {
  createWorkspace,
  eventTypes,
  inRounds,
  inTime,
  newEvent,
  newEvents,
  readLocations,
  soakMinutes,
  streamName,
} from './rig.ts';

const [created, changed] = eventTypes;

/** Writer processes, each with 8 concurrent operations. */
const writing = soakMinutes > 0 ? [0, 1, 2, 3] : [0, 1];

test('every reader gets all events once and in order while writers commit and roll back transactions', () =>
  inRounds(async (seed) => {
    const { url } = await sharedPostgres();
    await using workspace = await createWorkspace();
    await using db = await openPostgres(url);
    const { store } = db;
    await using idle = await connect(url);
    await idle.query('create table elsewhere (id integer)');
    await idle.query('begin');
    await idle.query('insert into elsewhere values (1)');
    await using begun = await connect(url);
    await begun.query('begin');

    await using reader = startReader({
      engine: 'postgres',
      url,
      subscriptions: [
        { name: 'all', pageSize: 3, filter: {} },
        { name: 'one type', pageSize: 7, filter: { types: [changed] } },
        { name: 'some streams', pageSize: 5, filter: { streamPattern: '-(1|2|marker)$' } },
      ],
    });
    await using here = follow(store, { pageSize: 4 });
    await Promise.all([here.caughtUp(), reader.follower('all').caughtUp()]);

    const operations = soakMinutes > 0 ? 120 : 60;
    const writers = writing.map((index) => {
      const name = `w${index}`;
      const own = { workspace, name, seed: seed + index, operations };
      const plan = { streams: 20, inFlight: 8, transactionsPercent: 40 };
      return startWriter({ engine: 'postgres', url, ...own, ...plan });
    });
    await runWriters(writers);

    // The event arrives although two unrelated transactions are still open.
    const marker = newEvent('marker', { type: changed });
    await store.append(streamName('marker'), [marker]);
    const stored = await readLocations(store);
    assertNoViolations(
      checkStored(
        [
          ...(await workspace.histories()),
          ...invocationOf('marker', streamName('marker'), ['marker']),
        ],
        stored,
      ),
      `MILLRACE_SEED=${seed}`,
    );
    assert.ok(stored.length > operations, `only ${stored.length} events were stored`);
    const changes = new Set<string>();
    for await (const { type, eventId } of store.readAll())
      if (type === changed) changes.add(eventId);

    for (const { name, follower, expected } of [
      { name: 'here', follower: here, expected: stored },
      { name: 'all', follower: reader.follower('all'), expected: stored },
      {
        name: 'one type',
        follower: reader.follower('one type'),
        expected: stored.filter(({ eventId }) => changes.has(eventId)),
      },
      {
        name: 'some streams',
        follower: reader.follower('some streams'),
        expected: stored.filter(({ stream }) => /-(1|2|marker)$/.test(stream)),
      },
    ]) {
      await follower.has('marker');
      const run = `MILLRACE_SEED=${seed}, subscription '${name}'`;
      assertNoViolations(checkDelivered(expected, follower.delivered), run);
    }
    await idle.query('rollback');
  }));

function invocationOf(operation: string, stream: string, eventIds: readonly string[]) {
  return [{ kind: 'invoke', operation, writes: [{ stream, expected: 'any', eventIds }] }] as const;
}

test('events appended after an open transaction are delivered after its events', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  const { store } = db;
  await using client = await connect(url);
  await using follower = follow(store, { pageSize: 2 });
  await store.append(streamName('before'), newEvents('before', 1));
  await follower.has('before-0');

  await client.query('begin');
  await store.append(streamName('open'), newEvents('open', 2), { transaction: client });
  const later = await store.append(streamName('later'), newEvents('later', 3));
  assert.ok((await store.head()) < later.position);
  assert.deepEqual(
    (await readLocations(store)).map(({ eventId }) => eventId),
    ['before-0'],
  );
  // Reading the stream itself shows acknowledged events immediately.
  assert.equal((await store.readStream(streamName('later')).toArray()).length, 3);
  assert.equal(follower.delivered.length, 1);
  await client.query('commit');

  await follower.has('later-2');
  assert.deepEqual(
    follower.delivered.map(({ eventId }) => eventId),
    ['before-0', 'open-0', 'open-1', 'later-0', 'later-1', 'later-2'],
  );
});

test('rolling back to a savepoint removes only its own events', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  const { store } = db;
  await using client = await connect(url);
  await using follower = follow(store);
  const append = (name: string) =>
    store.append(streamName(name), newEvents(name, 1), { transaction: client });

  for (const first of ['none', 'kept'] as const) {
    await client.query('begin');
    if (first === 'kept') await append('kept');
    await client.query('savepoint here');
    await append(`gone-${first}`);
    await client.query('rollback to here');
    // Later events of the transaction come after this event, which is already stored.
    await store.append(streamName('between'), newEvents(`between-${first}`, 1));
    await append(`after-${first}`);
    await client.query('savepoint there');
    await append(`released-${first}`);
    await client.query('release there');
    const last = await store.append(streamName('last'), newEvents(`last-${first}`, 1));
    assert.ok(
      (await store.head()) < last.position,
      'the reader did not wait for the open transaction',
    );
    await client.query('commit');
    await follower.has(`last-${first}-0`);
  }

  assertNoViolations(checkDelivered(await readLocations(store), follower.delivered), 'savepoints');
  assert.deepEqual(
    follower.delivered.map(({ eventId }) => eventId.replace(/-0$/, '')).join(' '),
    'between-none after-none released-none last-none ' +
      'kept between-kept after-kept released-kept last-kept',
  );
});

test('many appends in one transaction need one entry in the lock table', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  const { store } = db;
  await using client = await connect(url);
  await client.query('begin');
  for (let count = 0; count < 20; count += 1) {
    await store.append(streamName(count), newEvents(`e${count}`, 1), { transaction: client });
  }
  const { rows } = await client.query<{ count: string }>(
    `select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
  );
  assert.equal(rows[0]?.count, '1');
  await client.query('commit');
  assert.equal((await readLocations(store)).length, 20);
});

test('the order holds when the sequence exceeds the 31 and 32 bits of a lock', async () => {
  for (const around of [2 ** 31, 2 ** 32, 2 ** 40]) {
    const { url } = await sharedPostgres();
    await using db = await openPostgres(url);
    const { store } = db;
    await using client = await connect(url);
    await client.query(`select setval('millrace.event_sequence', ${around - 3})`);
    await using follower = follow(store);
    await client.query('begin');
    await store.append(streamName('open'), newEvents('open', 2), { transaction: client });
    const later = await store.append(streamName('later'), newEvents('later', 5));
    assert.ok(Number.parseInt(later.position, 16) > around);
    assert.deepEqual(await readLocations(store), []);
    await client.query('commit');
    await follower.has('later-4');
    assertNoViolations(checkDelivered(await readLocations(store), follower.delivered), `${around}`);
  }
});

test('a writer that locks after a reader has read the sequence does not delay the reader', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  const { store } = db;
  const { position } = await store.append(streamName('a'), newEvents('a', 3));
  await using client = await connect(url);
  await client.query('begin');
  // Simulates other writers that advance the sequence between the two reads.
  const above = Number.parseInt(position, 16) + 7;
  await client.query('select pg_advisory_xact_lock_shared($1, $2)', [lockClass('millrace'), above]);
  assert.equal(await store.head(), position);
  assert.equal((await readLocations(store)).length, 3);
});

test('concurrent appends of several processes to the same new streams cause no deadlock', async () => {
  const { url } = await sharedPostgres();
  await using one = await openPostgres(url);
  await using two = await openPostgres(url);
  await using admin = await connect(url);
  const rounds = 30;
  for (let round = 0; round < rounds; round += 1) {
    const names = [0, 1, 2, 3].map((index) => streamName(`r${round}-${index}`));
    await Promise.all(
      [one, two, one, two].map(({ store }, index) => {
        // Some streams already exist for one process and are still new to another.
        const streams = names.toSpliced(index, 1);
        const events = (stream: string) => [newEvent(`${round}:${index}:${stream}`)];
        return store.appendMany(streams.map((stream) => ({ stream, events: events(stream) })));
      }),
    );
  }
  assert.equal((await readLocations(one.store)).length, rounds * 4 * 3);
  const { rows } = await admin.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  assert.equal(rows[0]?.deadlocks, '0');
});

test('a deadlock with a transaction of the caller is resolved by retrying the append', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url);
  const { store } = db;
  await using client = await connect(url);
  const [a, z] = [streamName('a'), streamName('z')];
  await store.appendMany([
    { stream: a, events: newEvents('a', 1) },
    { stream: z, events: newEvents('z', 1) },
  ]);
  await client.query('begin');
  await store.append(z, newEvents('tx-z', 1), { transaction: client });
  // This append locks stream a, then waits for stream z.
  const batch = store.appendMany([
    { stream: a, events: newEvents('batch-a', 1) },
    { stream: z, events: newEvents('batch-z', 1) },
  ]);
  const [transaction] = await Promise.allSettled([
    store
      .append(a, newEvents('tx-a', 1), { transaction: client })
      .then(() => client.query('commit')),
  ]);
  if (transaction?.status === 'rejected') {
    const { code, retryable } = transaction.reason as { code: string; retryable: boolean };
    assert.deepEqual({ code, retryable }, { code: 'STORE_UNAVAILABLE', retryable: true });
    await client.query('rollback');
  }
  const results = await inTime('the batch', batch);
  assert.equal(results.length, 2);
  const ids = new Set((await readLocations(store)).map(({ eventId }) => eventId));
  assert.ok(ids.has('batch-a-0') && ids.has('batch-z-0'));
  assert.equal(ids.has('tx-a-0'), transaction?.status === 'fulfilled');
  assert.equal(ids.has('tx-z-0'), transaction?.status === 'fulfilled');
});

test('transactions that use the whole pool can still add a new event type and a new data subject', async () => {
  const { url } = await sharedPostgres();
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const clients: pg.PoolClient[] = [];
  try {
    await using db = await openPostgres(pool);
    const { store } = db;
    while (clients.length < 3) clients.push(await pool.connect());
    const work = clients.map(async (client, index) => {
      await client.query('begin');
      const headers = { [subjectHeader]: 'person-1' };
      const event = newEvent(`e${index}`, { type: 'item.never-seen.v1', headers });
      await store.append(streamName(index), [event], { transaction: client });
      await client.query(index === 0 ? 'rollback' : 'commit');
    });
    await inTime('three appends in three transactions of a pool of three', Promise.all(work));
    for (const client of clients.splice(0)) client.release();
    // The type was also added by the transaction that was rolled back.
    await store.append(streamName('last'), [newEvent('e3', { type: 'item.never-seen.v1' })]);
    const events = await store.readAll().toArray();
    assert.deepEqual(
      events.map(({ eventId, type }) => `${eventId} ${type}`).toSorted(),
      ['e1', 'e2', 'e3'].map((id) => `${id} item.never-seen.v1`),
    );
  } finally {
    for (const client of clients) client.release(true);
    await pool.end();
  }
});

test('a transaction that added a new event type while the pool was exhausted can continue', async () => {
  const { url } = await sharedPostgres();
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const clients: pg.PoolClient[] = [];
  try {
    await using db = await openPostgres(pool);
    const { store } = db;
    while (clients.length < 3) clients.push(await pool.connect());
    const [client, ...others] = clients as [pg.PoolClient, ...pg.PoolClient[]];
    await client.query('begin');
    const append = (index: number) => {
      const headers = { [subjectHeader]: 'person-1' };
      const event = newEvent(`e${index}`, { type: 'item.never-seen.v1', headers });
      return store.append(streamName('a'), [event], { transaction: client });
    };
    await append(0);
    for (const other of others) other.release();
    clients.length = 1;
    // The rows that the first append added must not block the second one.
    await inTime('the second append', append(1), 60_000);
    const outside = store.append(streamName('b'), [newEvent('b', { type: 'item.never-seen.v1' })]);
    await inTime('a concurrent append', outside, 60_000);
    await client.query('commit');
    assert.equal((await readLocations(store)).length, 3);
  } finally {
    for (const client of clients) client.release(true);
    await pool.end();
  }
});

test('two schemas with names of maximum length keep their prepared statements apart', async () => {
  const { url } = await sharedPostgres();
  await using db = await openPostgres(url, { schema: 's'.repeat(63) });
  const { store } = db;
  await using other = await openPostgres(url, { schema: `${'s'.repeat(62)}t` });
  await store.append(streamName('a'), [newEvent('a'), newEvent('b', { type: changed })]);
  assert.equal((await store.readAll({ filter: { types: [created] } }).toArray()).length, 1);
  assert.equal((await store.readStream(streamName('a')).toArray()).length, 2);
  assert.equal((await other.store.readAll().toArray()).length, 0);
});
