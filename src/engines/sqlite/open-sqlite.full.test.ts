import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { hasCode } from '../../foundation/error.ts';
import { startOutboxProjector } from '../../outbox/outbox-projector.ts';
import { createTasks } from '../../tasks/create-tasks.ts';
import { taskType } from '../../tasks/task-type.ts';
import { eventually } from '../../testing/assertions.ts';
import { newMessage } from '../../testing/conformance/outbox/fixture.ts';
import { newEvent, newStream } from '../../testing/conformance/store/fixture.ts';
import { openSqlite, type SqliteEngine } from './index.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-handle-'));
after(() => rm(folder, { recursive: true, force: true }));
let files = 0;

function newPath(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

const isClosed = (error: unknown): boolean => hasCode(error, 'STORE_CLOSED');

/** The worker threads of this process that started since then, and those that still run. */
function watchThreads() {
  const running = new Set<Worker>();
  let started = 0;
  const onWorker = (worker: Worker): void => {
    started += 1;
    running.add(worker);
    worker.once('exit', () => running.delete(worker));
  };
  process.on('worker', onWorker);
  return {
    counts: () => ({ started, running: running.size }),
    [Symbol.dispose]: () => void process.off('worker', onWorker),
  };
}

/** A call of each role that reads or writes the file. */
const calls: Readonly<
  Record<Exclude<keyof SqliteEngine, 'inlineAppends' | symbol>, (db: SqliteEngine) => unknown>
> = {
  store: ({ store }) => store.append(newStream(), [newEvent()]),
  subscriptions: ({ subscriptions }) => subscriptions.checkpoints.open('sub:a:b:v1', 1),
  snapshots: ({ snapshots }) => snapshots.load(newStream()),
  keyClaims: ({ keyClaims }) => keyClaims.claim('k-1', { stream: 's', command: 'c' }),
  readModels: ({ readModels }) => readModels.capabilities,
  readModelVersions: ({ readModelVersions }) => readModelVersions.list(),
  sagas: ({ sagas }) => sagas.list({}),
  traces: ({ traces }) => traces.sweep(0, 1),
  outbox: ({ outbox }) => outbox.enqueueMany([newMessage()]),
  bus: ({ bus }) => bus.publish({ subject: 'gbe.events.system.health', payload: 1 }),
  tasks: ({ tasks }) =>
    createTasks(tasks, { types: [taskType('mail')] }).enqueue({ type: 'mail', payload: {} }),
  keys: ({ keys }) => keys.putIfAbsent('k', 'v'),
  breakers: ({ breakers }) => breakers.open('x', { forMs: 1, openings: 1 }),
  endpointHealth: ({ endpointHealth }) => endpointHealth.read('x'),
  queue: ({ queue }) => queue.add('mails', [{ id: 'j', name: 'send', data: {} }]),
  database: ({ database }) => database,
};

test('all roles of a handle share one writer thread, which the next handle uses', async () => {
  using threads = watchThreads();
  // Earlier tests may have left an idle thread, which the first handle uses.
  let started = 0;
  for (const round of [1, 2, 3]) {
    await using db = await openSqlite(newPath());
    for (const call of Object.values(calls)) await call(db);
    await Promise.all(Object.values(calls).map((call) => call(db)));
    if (round === 1) ({ started } = threads.counts());
  }
  assert.ok(started <= 1, `${started} threads`);
  assert.equal(threads.counts().started, started);
});

test('a process keeps two idle writer threads', async () => {
  using threads = watchThreads();
  const handles = await Promise.all(Array.from({ length: 6 }, () => openSqlite(newPath())));
  assert.ok(threads.counts().running >= 4);
  await Promise.all(handles.map((db) => db[Symbol.asyncDispose]()));
  await eventually('the other threads ended', () => threads.counts().running <= 2);
  const { started } = threads.counts();
  await using opened = new AsyncDisposableStack();
  for (const expected of [started, started, started + 1]) {
    opened.use(await openSqlite(newPath()));
    assert.equal(threads.counts().started, expected);
  }
});

test('a file that cannot be opened leaves no thread', async () => {
  using threads = watchThreads();
  await assert.rejects(openSqlite(folder), (error) => hasCode(error, 'STORE_UNAVAILABLE'));
  await eventually('the writer thread ended', () => threads.counts().running === 0);
});

test('a role is created on first access: the file of the workers exists only if they are used', async () => {
  const path = newPath();
  await using db = await openSqlite(path);
  await db.store.append(newStream(), [newEvent()]);
  await db.bus.publish({ subject: 'gbe.events.system.health', payload: 1 });
  assert.equal(db.store, db.store);
  assert.equal(db.bus, db.bus);
  const workFile = path.replace('.db', '.work.db');
  assert.ok(!existsSync(workFile));
  await db.keys.putIfAbsent('k', 'v');
  assert.ok(existsSync(workFile));
});

test('closing one role leaves the others open, and closing the handle closes it only once', async () => {
  await using db = await openSqlite(newPath());
  await db.bus.publish({ subject: 'gbe.events.system.health', payload: 1 });
  await db.bus[Symbol.asyncDispose]();
  await assert.rejects(db.bus.groups(), (error) => hasCode(error, 'BUS_CLOSED'));
  {
    await using tasks = createTasks(db.tasks, { types: [taskType('mail')] });
    await tasks.enqueue({ type: 'mail', payload: {} });
  }
  await db.queue.add('mails', [{ id: 'j', name: 'send', data: {} }]);
  await db.outbox[Symbol.asyncDispose]();
  assert.equal((await db.store.append(newStream(), [newEvent()])).revision, 0);
  assert.deepEqual(await db.sagas.list({}), []);
});

test('closing the handle ends the readers and consumers of its roles', async () => {
  const db = await openSqlite(newPath());
  const { store, bus, outbox } = db;
  const following = Promise.withResolvers<void>();
  const live = (async () => {
    for await (const item of store.subscribe()) if (item.kind === 'caughtUp') following.resolve();
  })();
  await following.promise;
  const messages = await bus.subscribe('gbe.>');
  const reading = Array.fromAsync(messages);
  const group = await bus.group({ group: 'g', subject: 'gbe.events.system.health' });
  const fetching = group.fetch({ waitMs: 600_000 });
  const ended = Promise.allSettled([live, reading, fetching]);
  await db[Symbol.asyncDispose]();
  await ended;
  await assert.rejects(live, isClosed);
  await assert.rejects(store.head(), isClosed);
  await assert.rejects(outbox.counts(), isClosed);
  await assert.rejects(bus.groups(), (error) => hasCode(error, 'BUS_CLOSED'));
});

test('appends in flight are stored before the handle is closed', async () => {
  const path = newPath();
  const db = await openSqlite(path);
  const stream = newStream();
  const appends = Array.from({ length: 20 }, () => db.store.append(stream, [newEvent()]));
  await db[Symbol.asyncDispose]();
  const outcomes = await Promise.allSettled(appends);
  const stored = outcomes.filter(({ status }) => status === 'fulfilled').length;
  await using again = await openSqlite(path);
  const info = await again.store.streamInfo(stream);
  assert.equal((info?.revision ?? -1) + 1, stored);
});

test('a closed handle creates no role', async () => {
  const path = newPath();
  const db = await openSqlite(path);
  await db[Symbol.asyncDispose]();
  await db[Symbol.asyncDispose]();
  for (const role of ['store', 'subscriptions', 'outbox', 'bus', 'tasks', 'keys'] as const) {
    assert.throws(() => db[role], isClosed, role);
  }
  assert.ok(!existsSync(path.replace('.db', '.work.db')));
});

test('two handles on one file see each other’s commits', async () => {
  const path = newPath();
  await using one = await openSqlite(path);
  await using other = await openSqlite(`sqlite://${path}`);
  const stream = newStream();
  const leaving = new AbortController();
  const following = Promise.withResolvers<void>();
  const seen = (async () => {
    for await (const item of other.store.subscribe({ signal: leaving.signal })) {
      if (item.kind === 'caughtUp') following.resolve();
      if (item.kind === 'events') return item.events.map((event) => event.stream);
    }
    return [];
  })();
  await following.promise;
  await using messages = await other.bus.subscribe('gbe.>');
  await one.store.append(stream, [newEvent()]);
  assert.deepEqual(await seen, [stream]);
  leaving.abort();
  await one.bus.publish({ subject: 'gbe.events.system.health', payload: 'hello' });
  for await (const { payload } of messages) {
    assert.equal(payload, 'hello');
    break;
  }
  await one.outbox.enqueueMany([newMessage()]);
  assert.equal((await other.outbox.list({})).length, 1);
  await one.keys.putIfAbsent('k', 'one');
  assert.equal((await other.keys.putIfAbsent('k', 'other')).value, 'one');
  await one.queue.add('mails', [{ id: 'j', name: 'send', data: {} }]);
  assert.equal(await other.queue.state('mails', 'j'), 'waiting');
});

test('all roles of a file have the same database, however its URL is written', async () => {
  const path = newPath();
  for (const url of [path, `sqlite:${path}`, `sqlite:${relative(process.cwd(), path)}`]) {
    await using db = await openSqlite(url);
    assert.equal(db.database, `sqlite:${path}`);
    assert.equal(db.subscriptions.database, db.database);
    assert.equal(db.outbox.database, db.database);
  }
  await using other = await openSqlite(newPath());
  assert.notEqual(other.outbox.database, `sqlite:${path}`);
});

const mapper = {
  map: ({ type }: { readonly type: string }) => ({
    integrationType: 'webhook:x',
    eventType: type,
    payload: {},
  }),
};

test('a projector enqueues in the transaction of its checkpoint only within one database', async () => {
  await using db = await openSqlite(newPath());
  await using other = await openSqlite(newPath());
  for (const [version, { outbox }, expected] of [
    [1, db, ['enqueueIn']],
    [2, other, ['enqueueMany']],
  ] as const) {
    await db.store.append(newStream(), [newEvent()]);
    const used = new Set<string>();
    const noted: typeof outbox = {
      ...outbox,
      enqueueIn(...args) {
        used.add('enqueueIn');
        return outbox.enqueueIn(...args);
      },
      enqueueMany(...args) {
        used.add('enqueueMany');
        return outbox.enqueueMany(...args);
      },
    };
    const { store, subscriptions } = db;
    await using runner = await startOutboxProjector(
      { store, subscriptions, outbox: noted },
      { name: `sub:banking:outbox:v${version}`, mapper },
    );
    await runner.whenCaughtUp();
    assert.deepEqual([...used], expected);
    assert.equal((await outbox.list({})).length, version);
  }
});

const emptyModel = { bc: 'banking', aggregate: 'account', version: 1 };

/** What a process does in the background; no caller waits for it. */
const housekeeping: Readonly<Record<string, (db: SqliteEngine) => Promise<unknown>>> = {
  'scavenge of the store': ({ store }) => store.scavenge(),
  'purge of the outbox': ({ outbox }) => outbox.purge(new Date(0), 1),
  'sweep of the traces': ({ traces }) => traces.sweep(0, 1),
  'sweep of processed events': ({ subscriptions }) => subscriptions.processed.sweep(1),
  'trim of the bus': ({ bus }) => bus.trim('gbe.events.system.health', { lengthMax: 0 }),
  'removal of jobs': ({ tasks }) => tasks.remove([]),
  'tidying of tasks': ({ tasks }) => tasks.tidy(0),
  'removal of documents': ({ readModels }) => readModels.clear(emptyModel, 1),
};

test('an append is stored before the housekeeping of all roles that was started earlier', async () => {
  const path = newPath();
  await using db = await openSqlite(path);
  const stream = newStream();
  await db.store.append(stream, [newEvent(), newEvent()]);
  await db.store.setStreamMetadata(stream, { maxCount: 1 });
  const order: string[] = [];
  const running: Promise<unknown>[] = [];
  {
    // While another connection has the write lock, the writer thread cannot commit.
    using other = new DatabaseSync(path, { timeout: 30_000 });
    other.exec('begin immediate');
    for (const [name, start] of Object.entries(housekeeping)) {
      running.push(start(db).then(() => order.push(name)));
    }
    await new Promise(setImmediate);
    running.push(db.store.append(newStream(), [newEvent()]).then(() => order.push('append')));
    await new Promise(setImmediate);
    other.exec('rollback');
  }
  await Promise.all(running);
  assert.equal(order.length, Object.keys(housekeeping).length + 1);
  // The thread may have taken one request before the append arrived.
  assert.ok(order.indexOf('append') <= 1, order.join(', '));
});

test('after its file was removed or replaced, a handle acknowledges and returns nothing', async () => {
  for (const change of ['removed', 'replaced'] as const) {
    const own = await mkdtemp(join(folder, 'gone-'));
    const path = join(own, 'events.db');
    await using db = await openSqlite(path);
    await using tasks = createTasks(db.tasks, { types: [taskType('mail')] });
    const stream = newStream();
    await db.store.append(stream, [newEvent()]);
    await db.bus.publish({ subject: 'a.b.c', payload: 1 });
    const { id } = await tasks.enqueue({ type: 'mail', payload: 1 });
    await rm(own, { recursive: true, force: true });
    if (change === 'replaced') await (await openSqlite(path))[Symbol.asyncDispose]();
    const personal = newEvent({ headers: { dataSubject: 'zelda' } });
    const requests: Readonly<Record<string, () => Promise<unknown>>> = {
      append: () => db.store.append(stream, [newEvent()]),
      'append about a person': () => db.store.append(stream, [personal]),
      forget: () => db.store.forget('zelda'),
      readStream: () => db.store.readStream(stream).toArray(),
      readAll: () => db.store.readAll().toArray(),
      head: () => db.store.head(),
      publish: () => db.bus.publish({ subject: 'a.b.c', payload: 2 }),
      'read of the bus': () => Array.fromAsync(db.bus.read('a.b.c')),
      enqueue: () => tasks.enqueue({ type: 'mail', payload: 2 }),
      'read of a job': () => tasks.get(id),
      outbox: () => db.outbox.counts(),
      checkpoints: () =>
        db.subscriptions.checkpoints.load({ subscription: 'sub:a:b:v1', shard: 0 }),
    };
    for (const [name, request] of Object.entries(requests)) {
      await assert.rejects(request, /was removed or replaced/, `${name}, ${change}`);
    }
  }
});
