import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import pg from 'pg';
import { keyClaimsConformance } from '../../../testing/conformance/aggregates/key-claims.ts';
import { snapshotStoreConformance } from '../../../testing/conformance/aggregates/snapshot-store.ts';
import { newEvent } from '../../../testing/conformance/store/fixture.ts';
import { hasCode } from '../../../foundation/error.ts';
import {
  runConformance,
  type ConformanceRunner,
} from '../../../testing/conformance/store/event-store.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { sharedPostgres } from '../../../testing/servers/shared-servers.ts';
import { inTransaction } from '../connection/connection.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openPostgres, type PostgresOptions } from '../open-postgres.ts';
import { migratePostgres } from './schema.ts';
import { sharedSchemas } from '../../../testing/conformance/engines/postgres-shared-schema.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 10 });
after(() => pool.end());

/** Shared by the stores that cases open: connecting costs the server more than most cases do. */
const casePool = new pg.Pool({ connectionString: url, max: 10 });
after(() => casePool.end());

const schemas = sharedSchemas(pool, migratePostgres);
const schemasByStore = new WeakMap<EventStore, string>();
const openStores = new Map<string, number>();
/** The store that all cases share, and stores that a case closes, get separate pools, which end with them. */
let usesOwnPool = true;

async function openIn(
  schema: string,
  target: string | pg.Pool,
  options: PostgresOptions = {},
): Promise<EventStore> {
  const db = await openPostgres(target, {
    ...options,
    schema,
    roles: ['store'],
    connectionsMax: 5,
  });
  let isClosed = false;
  const handle = {
    store: db.store,
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      if (!isClosed) countStores(schema, -1);
      isClosed = true;
    },
  };
  const store = ownedRole(handle, 'store');
  countStores(schema, 1);
  schemasByStore.set(store, schema);
  return store;
}

/** Releases the schema for another case once its last store is closed. */
function countStores(schema: string, more: number): void {
  const count = (openStores.get(schema) ?? 0) + more;
  openStores.set(schema, count);
  if (count === 0) schemas.release(schema);
}

const schemaOf = (store: EventStore): string => schemasByStore.get(store) ?? '';

const runner: ConformanceRunner = {
  describe,
  after,
  test: (name, options, body) =>
    test(name, options, (context) => {
      if (name.startsWith('closing')) usesOwnPool = true;
      return body(context);
    }),
};

runConformance(runner, 'the event store in PostgreSQL', {
  capabilities: {
    multiStreamAppend: true,
    callerTransaction: true,
    durable: true,
    crossProcess: true,
  },
  async open(options) {
    const target = usesOwnPool ? url : casePool;
    usesOwnPool = false;
    return openIn(await schemas.take(), target, options);
  },
  async reopen(store, options) {
    const schema = schemaOf(store);
    countStores(schema, 1);
    await store[Symbol.asyncDispose]();
    const reopened = await openIn(schema, url, options);
    countStores(schema, -1);
    return reopened;
  },
  second: (store, options) => openIn(schemaOf(store), url, options),
  inTransaction: (_store, work) => inTransaction(pool, work),
  async rawContent(store) {
    const { rows } = await pool.query<{ text: string }>(
      `select payload::text || meta::text as text from "${schemaOf(store)}".events`,
    );
    return rows.map(({ text }) => text).join('\n');
  },
});

test('the store uses the caller’s pool and leaves it open', async () => {
  const db = await openPostgres(pool, { schema: 'users_pool' });
  assert.equal((await db.store.head()).length, 16);
  await db[Symbol.asyncDispose]();
  assert.equal((await pool.query('select 1 as one')).rows.length, 1);
});

test('the store works without named prepared statements', async () => {
  await using db = await openPostgres(url, { schema: 'unprepared', prepare: false });
  assert.equal(await db.store.streamInfo('a.b.v1-core-1'), undefined);
});

test('the store works for an ordinary role', async () => {
  await pool.query(`create role plain login; create schema plain_store authorization plain;
    grant create on database "${new URL(url).pathname.slice(1)}" to plain`);
  const plain = new URL(url);
  plain.username = 'plain';
  await using db = await openPostgres(plain.href, { schema: 'plain_store', roles: ['store'] });
  assert.equal(await db.store.streamInfo('a.b.v1-core-1'), undefined);
});

test('the view all_events has columns for the envelope, whatever its shape', async () => {
  await using db = await openPostgres(url, { schema: 'for_people', names: 'open' });
  const event = newEvent({ causationId: 'cause', user: { id: 'ada' }, correlationId: 'c' });
  await db.store.append('a.b.v1-core-1', [event]);
  await db.store.append('a.b.v1-core-1', [
    newEvent({ user: null as never, correlationId: 'c', causationId: 'odd' }),
  ]);
  const { rows } = await pool.query(
    `select causation_id, correlation_id, "user" ->> 'id' as "user", stream
     from for_people.all_events order by sequence`,
  );
  const stream = 'a.b.v1-core-1';
  assert.deepEqual(rows, [
    { causation_id: 'cause', correlation_id: 'c', user: 'ada', stream },
    { causation_id: 'odd', correlation_id: 'c', user: null, stream },
  ]);
});

test('rejects a schema of a newer version', async () => {
  const client = await pool.connect();
  await migratePostgres(client, 'newer');
  await client.query(`insert into newer.migrations (number, title) values (999, 'tomorrow')`);
  client.release();
  await assert.rejects(openPostgres(url, { schema: 'newer' }), /newer version/);
});

test('a missing database is reported', async () => {
  const nowhere = new URL(url);
  nowhere.pathname = '/nowhere';
  await assert.rejects(
    openPostgres(nowhere.href),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && /nowhere/.test(error.message),
  );
});

const aggregates = openPostgres(url, { schema: 'aggregates' });
after(async () => (await aggregates)[Symbol.asyncDispose]());
for (const { name, run } of snapshotStoreConformance(async () => (await aggregates).snapshots)) {
  test(`snapshots in PostgreSQL: ${name}`, run);
}
for (const { name, run } of keyClaimsConformance(async () => (await aggregates).keyClaims)) {
  test(`key claims in PostgreSQL: ${name}`, run);
}
