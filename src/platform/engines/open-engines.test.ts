import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { once } from 'node:events';
import { createEnvelope } from '../../contracts/envelope.ts';
import { hasCode } from '../../foundation/error.ts';
import { documentsOf } from '../../projections/documents.ts';
import { readModel } from '../../projections/read-model.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { examineEngines } from './examine-engines.ts';
import { roleTable, type RoleName } from './engine-table.ts';
import { createEngineSet, openEngineAt, openRole } from './open-engines.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-open-'));
after(() => rm(folder, { recursive: true }));
let files = 0;

function newUrl(): string {
  files += 1;
  return `sqlite:${join(folder, `${files}`, 'events.db')}`;
}

const stream = 'banking.currency.v1-core-USD';
const created = () =>
  createEnvelope(
    { type: 'currency.created.v1', payload: { name: 'Dollar' } },
    { tenant: 'core', aggregate: { bc: 'banking', type: 'currency', id: 'USD' } },
  );
const currencies = readModel<{ readonly code: string }>({
  bc: 'banking',
  aggregate: 'currency',
  version: 1,
});
const source = { tenant: 'core', id: 'USD', stream, revision: 0 };
const entry = {
  stream: 'shop.fulfilment.v1-core-o1',
  saga: 'shop.fulfilment.v1',
  tenant: 'core',
  key: 'o1',
  status: 'parked',
  revision: 3,
  updatedAtMs: 1,
  dueAtMs: undefined,
  shard: 0,
  reason: 'late',
} as const;

test('a store in memory is lost when it is closed, a store in a file is not', async () => {
  for (const [url, left] of [
    ['memory:', 0],
    [newUrl(), 1],
  ] as const) {
    {
      await using store = await openRole(url, 'store');
      await store.append(stream, [created()]);
    }
    await using again = await openRole(url, 'store');
    assert.equal((await again.readStream(stream).toArray()).length, left, url);
  }
});

test('documents in memory are lost when they are closed, documents in a file are not', async () => {
  for (const [url, left] of [
    ['memory:', undefined],
    [newUrl(), 'usd'],
  ] as const) {
    {
      await using readModels = await openRole(url, 'readModels');
      await documentsOf(readModels, currencies).put(source, { code: 'usd' });
    }
    await using readModels = await openRole(url, 'readModels');
    const found = await documentsOf(readModels, currencies).get('core', 'USD');
    assert.equal(found?.document.code, left, url);
  }
});

test('the saga index in a file is in the file of the events, and is durable', async () => {
  for (const [url, left] of [
    ['memory:', []],
    [newUrl(), [entry]],
  ] as const) {
    {
      await using sagas = await openRole(url, 'sagas');
      await sagas.put(entry);
    }
    await using db = await openEngineAt(url);
    assert.deepEqual(await db.sagas?.list({}), left, url);
    assert.deepEqual(await db.store?.readAll().toArray(), [], url);
  }
});

test('closing a role closes its engine', async () => {
  const store = await openRole(newUrl(), 'store');
  await store[Symbol.asyncDispose]();
  await assert.rejects(store.head(), (error) => hasCode(error, 'STORE_CLOSED'));
});

test('the options of an engine reach it', async () => {
  await using store = await openRole('memory:', 'store', { payloadBytesMax: 5 });
  await assert.rejects(
    () => store.append(stream, [created()]),
    (error) => hasCode(error, 'PAYLOAD_TOO_LARGE'),
  );
});

test('an unreachable server is reported without the password', async () => {
  await assert.rejects(
    () => openRole('postgres://app:hunter2secret@127.0.0.1:1/shop', 'store'),
    (error) =>
      hasCode(error, 'STORE_UNAVAILABLE') &&
      !JSON.stringify(error).includes('hunter2') &&
      !error.message.includes('hunter2'),
  );
});

test('a file of a newer version is rejected, whichever role is opened', async () => {
  const path = join(folder, 'newer.db');
  const database = new DatabaseSync(path);
  database.exec('pragma user_version = 999');
  database.close();
  for (const role of ['store', 'outbox', 'bus', 'tasks', 'traces'] as const) {
    await assert.rejects(
      openRole(`sqlite:${path}`, role),
      (error) => hasCode(error, 'CONFIG_INVALID') && /newer version/.test(error.message),
      role,
    );
  }
});

test('a link to a SQLite file or to its folder is the same database, before and after it exists', async () => {
  const real = join(folder, 'real');
  await mkdir(real);
  await symlink(real, join(folder, 'linked'));
  await symlink(join(real, 'events.db'), join(folder, 'link.db'));
  const urls = {
    store: `sqlite:${join(real, 'events.db')}`,
    keys: `sqlite:${join(folder, 'link.db')}`,
    bus: `sqlite:${join(folder, 'linked', 'events.db')}`,
  };
  for (const round of ['missing file', 'existing file']) {
    await using set = createEngineSet({ urls, needs: { keys: 'required', bus: 'required' } });
    assert.ok(set.isShared('store', 'keys'), round);
    assert.ok(set.isShared('store', 'bus'), round);
    assert.equal(await set.handleOf('store'), await set.handleOf('bus'), round);
  }
});

test('two URLs of one database are examined once', async () => {
  await using unused = await reservePort();
  const url = `redis://${unused.host}:${unused.port}`;
  const reports = await examineEngines({ store: 'memory:', keys: url, queue: `${url}/0` });
  assert.deepEqual(
    reports.map(({ roles }) => roles),
    [
      ['store', 'outbox'],
      ['keys', 'queue'],
    ],
  );
});

test('a schema name that needs quotes is rejected before a query is sent', async () => {
  await assert.rejects(
    () => openRole('postgres://127.0.0.1:1/shop?schema=a"b', 'store'),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
});

for (const [url, pattern] of [
  ['localhost:6379', /engine 'localhost:' is not supported/],
  ['', /must start with its engine: one of /],
  ['mysql://u:secret@h/db', /engine 'mysql:' is not supported/],
  ['rediss+clusters://u:secret@h', /Did you mean rediss\+cluster:\?/],
  ['redis://u:secret@h/shop', /database must be a number/],
  ['nats://u:secret@h/x', /nothing may follow the host/],
] as const) {
  const isNats = url.startsWith('nats:');
  for (const role of isNats
    ? (['leases'] as const)
    : (['leases', 'readModels', 'sagas'] as const)) {
    test(`${role}: rejects '${url}' with the reason and without its password`, async () => {
      await assert.rejects(
        () => openRole(url, role),
        (error) =>
          hasCode(error, 'CONFIG_INVALID') &&
          pattern.test(error.message) &&
          !error.message.includes('secret'),
      );
    });
  }
}

test('an engine that lacks the role is rejected before it is connected, without its password', async () => {
  await using server = createServer((socket) => socket.destroy());
  let connections = 0;
  server.on('connection', () => (connections += 1));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  for (const [scheme, role] of [
    ['postgres', 'leases'],
    ['nats', 'store'],
    ['redis', 'outbox'],
    ['mongodb', 'bus'],
    ['kurrentdb', 'tasks'],
  ] as const) {
    const path = {
      postgres: 'shop',
      mongodb: 'shop?serverSelectionTimeoutMS=200',
      nats: '',
      redis: '',
      kurrentdb: '',
    }[scheme];
    await assert.rejects(
      () => openRole(`${scheme}://u:secret@127.0.0.1:${port}/${path}`, role),
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        error.message.includes(`has no ${roleTable[role].title}`) &&
        !error.message.includes('secret'),
      `${scheme} as ${role}`,
    );
  }
  assert.equal(connections, 0);
});

for (const [scheme, roles] of [
  ['redis', ['leases', 'readModels', 'sagas', 'bus', 'tasks']],
  ['redis+cluster', ['leases', 'readModels', 'sagas']],
  ['nats', ['leases', 'bus', 'tasks']],
] as const) {
  test(`${scheme}: an address where nothing listens is a retryable error`, async () => {
    await using unused = await reservePort();
    for (const role of roles) {
      await assert.rejects(
        () => openRole(`${scheme}://${unused.host}:${unused.port}`, role),
        (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
        role,
      );
    }
  });
}

const required = Object.fromEntries(
  (Object.keys(roleTable) as RoleName[]).map((role) => [role, 'required' as const]),
);

test('a set opens each database once, when one of its roles is first used', async () => {
  const [store, bus] = [newUrl(), newUrl()];
  await using set = createEngineSet({ urls: { store, bus }, needs: required });
  const fileOf = (url: string): string => url.replace('sqlite:', '');
  assert.deepEqual([store, bus].map(fileOf).map(existsSync), [false, false]);
  const events = await set.open('store');
  assert.equal(await set.open('store'), events);
  assert.equal(await set.handleOf('subscriptions'), await set.handleOf('outbox'));
  assert.deepEqual([store, bus].map(fileOf).map(existsSync), [true, false]);
  await (await set.open('bus')).publish({ subject: 'gbe.events.system.health', payload: 1 });
  assert.equal(existsSync(fileOf(bus)), true);
  assert.deepEqual(
    [set.isShared('store', 'outbox'), set.isShared('bus', 'tasks'), set.isShared('store', 'bus')],
    [true, true, false],
  );
});

test('closing a set closes its engines, and one that was not opened is not opened for it', async () => {
  const [store, bus] = [newUrl(), newUrl()];
  const set = createEngineSet({ urls: { store, bus }, needs: required });
  const events = await set.open('store');
  await set[Symbol.asyncDispose]();
  await assert.rejects(events.head(), (error) => hasCode(error, 'STORE_CLOSED'));
  assert.equal(existsSync(bus.replace('sqlite:', '')), false);
});

test('a role that is off is rejected with the setting that turns it on', async () => {
  await using set = createEngineSet({
    urls: { store: 'kurrentdb://127.0.0.1:1' },
    needs: { store: 'required', outbox: 'optional' },
  });
  assert.deepEqual([set.has('store'), set.has('outbox')], [true, false]);
  for (const open of [() => set.open('outbox'), () => set.handleOf('outbox')]) {
    await assert.rejects(
      open,
      (error) => hasCode(error, 'NOT_SUPPORTED') && /set MILLRACE_OUTBOX/.test(error.message),
    );
  }
});

test('a store in memory has all other roles in memory, too', async () => {
  await using set = createEngineSet({ urls: { store: 'memory:' }, needs: required });
  const bus = await set.open('bus');
  await bus.publish({ subject: 'gbe.events.system.health', payload: 1 });
  assert.equal((await bus.stream('gbe.events.system.health'))?.length, 1);
  for (const role of Object.keys(required) as RoleName[]) {
    assert.equal(await set.handleOf(role), await set.handleOf('store'), role);
  }
});
