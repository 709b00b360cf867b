import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { keyClaimsConformance } from '../../../testing/conformance/aggregates/key-claims.ts';
import { snapshotStoreConformance } from '../../../testing/conformance/aggregates/snapshot-store.ts';
import { hasCode } from '../../../foundation/error.ts';
import {
  eventStoreConformance,
  type ConformanceCase,
  type StoreFixture,
} from '../../../testing/conformance/store/event-store.ts';
import type { EventStore, EventStoreOptions } from '../../../store/event-store.ts';
import { newEvent } from '../../../testing/conformance/store/fixture.ts';
import { runNodeScript } from '../../../testing/servers/node-script.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openSqlite } from '../open-sqlite.ts';
import { sqliteEventStore } from './event-store.ts';
import {
  openSharedSqliteFile,
  type SharedSqliteFile,
} from '../../../testing/conformance/engines/sqlite-shared-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));

const paths = new WeakMap<EventStore, string>();
let files = 0;

async function openAt(path: string, options?: EventStoreOptions): Promise<EventStore> {
  const store = ownedRole(await openSqlite(`sqlite:${path}`, options), 'store');
  paths.set(store, path);
  return store;
}

const pathOf = (store: EventStore): string => paths.get(store) ?? '';

const fixture: StoreFixture = {
  capabilities: {
    multiStreamAppend: true,
    callerTransaction: false,
    durable: true,
    crossProcess: true,
    followingAppend: true,
  },
  open(options) {
    files += 1;
    return openAt(join(folder, `${files}`, 'events.db'), options);
  },
  async reopen(store, options) {
    await store[Symbol.asyncDispose]();
    return openAt(pathOf(store), options);
  },
  second: (store, options) => openAt(pathOf(store), options),
  async rawContent(store) {
    const path = pathOf(store);
    const parts = readdirSync(join(path, '..'));
    return parts.map((part) => readFileSync(join(path, '..', part), 'latin1')).join('\n');
  },
};

const closing = new AsyncDisposableStack();
closing.defer(() => rmSync(folder, { recursive: true, force: true }));
after(() => closing.disposeAsync());
/** Files that no store uses. */
const free: SharedSqliteFile[] = [];

/** A store in a file that stays open after the store is closed, for the next case. */
async function openShared(options?: EventStoreOptions): Promise<EventStore> {
  // The threads of a file keep the ids of these names in memory.
  const tablesToKeep = ['names', 'category_types'];
  const shared =
    free.pop() ?? closing.use(await openSharedSqliteFile(folder, 10_000, tablesToKeep));
  shared.reset();
  const { file } = shared;
  const inner = sqliteEventStore(file, options);
  let isClosed = false;
  const close = async (): Promise<void> => {
    await inner[Symbol.asyncDispose]();
    if (!isClosed) free.push(shared);
    isClosed = true;
  };
  const store = { ...inner, [Symbol.asyncDispose]: close };
  paths.set(store, file.path);
  return store;
}

/** Cases about closing, opening again and the bytes of a file open separate files. */
const needsOwnFile = ({ name, skip }: ConformanceCase): boolean =>
  skip !== undefined || /^(closing|durable|erasure):/.test(name);

const sharing = eventStoreConformance({ ...fixture, open: openShared });
closing.defer(async () => sharing.at(-1)?.run());
for (const { name, skip, run } of [
  ...eventStoreConformance(fixture).filter(needsOwnFile),
  ...sharing.filter((each) => !needsOwnFile(each)),
]) {
  test(`the event store in SQLite: ${name}`, { skip: skip ?? false }, ({ signal }) => run(signal));
}

test('rejects a URL without a file, with a hint', async () => {
  for (const url of ['sqlite:', 'sqlite::memory:']) {
    await assert.rejects(openSqlite(url), (error) => hasCode(error, 'CONFIG_INVALID'));
  }
});

test('rejects a file that is not a database and leaves it unchanged', async () => {
  const path = join(folder, 'notes.txt');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(path, 'these are notes, and rather long ones, so that SQLite looks at them twice');
  await assert.rejects(openSqlite(path), (error) => hasCode(error, 'STORE_UNAVAILABLE'));
  assert.match(readFileSync(path, 'utf8'), /^these are notes/);
});

test('appends in flight and closing keep the process alive, an idle store does not', async () => {
  const path = JSON.stringify(join(folder, 'ends.db'));
  const script = runNodeScript(`
    const { openSqlite } = await load('../../engines/sqlite/index.ts');
    const { newEvent } = await load('../conformance/store/fixture.ts');
    const closed = await openSqlite(${path});
    await closed.store.append('a.b.v1-core-1', [newEvent()]);
    await closed[Symbol.asyncDispose]();
    const open = await openSqlite(${path});
    void open.store.append('a.b.v1-core-1', [newEvent()]).then(({ revision }) => console.log(revision));
  `);
  assert.equal(await script.printed(), 1);
  assert.equal(await script.ended, 0);
});

test('finds ids in a long stream before and after they are indexed', async () => {
  await using store = await openAt(join(folder, 'ids.db'));
  const stream = 'a.b.v1-core-long';
  const events = Array.from({ length: 3_000 }, () => newEvent());
  for (let there = 0; there < events.length; there += 100) {
    const expected = there === 0 ? 'none' : there - 1;
    await store.append(stream, events.slice(there, there + 100), { expected });
  }
  const database = new DatabaseSync(join(folder, 'ids.db'), { readOnly: true });
  const indexed = (): unknown =>
    database.prepare('select count(*) as n from event_ids').get()?.['n'];
  // At most 1,024 events are scanned.
  assert.ok(Number(indexed()) >= 3_000 - 1_024);
  for (const at of [0, 1_500, 2_999]) {
    assert.equal((await store.findEvent(stream, events[at]?.eventId ?? ''))?.revision, at);
    const again = await store.append(stream, [events[at] ?? newEvent()]);
    assert.equal(again.revision, at);
  }
  assert.equal((await store.append(stream, [newEvent()])).revision, 3_000);
  assert.ok(Number(indexed()) >= 3_000 - 64);
  database.close();
});

const aggregates = openSqlite(join(folder, 'aggregates.db'));
after(async () => (await aggregates)[Symbol.asyncDispose]());
for (const { name, run } of snapshotStoreConformance(async () => (await aggregates).snapshots)) {
  test(`snapshots in SQLite: ${name}`, run);
}
for (const { name, run } of keyClaimsConformance(async () => (await aggregates).keyClaims)) {
  test(`key claims in SQLite: ${name}`, run);
}
