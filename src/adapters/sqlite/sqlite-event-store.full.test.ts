import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { keyClaimsConformance } from '../../aggregates/key-claims.conformance.ts';
import { snapshotStoreConformance } from '../../aggregates/snapshot-store.conformance.ts';
import { hasCode } from '../../foundation/error.ts';
import { runConformance } from '../../store/event-store.conformance.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { EventStoreOptions } from '../../store/create-event-store.ts';
import { sqliteEventStore } from './sqlite-event-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-sqlite-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const paths = new WeakMap<EventStore, string>();
let files = 0;

async function openAt(path: string, options?: EventStoreOptions): Promise<EventStore> {
  const store = await sqliteEventStore(`sqlite:${path}`, options);
  paths.set(store, path);
  return store;
}

const pathOf = (store: EventStore): string => paths.get(store) ?? '';

runConformance(test, 'the event store in SQLite', {
  capabilities: {
    multiStreamAppend: true,
    callerTransaction: false,
    durable: true,
    crossProcess: true,
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
});

test('a URL without a file is refused with what to write instead', async () => {
  for (const url of ['sqlite:', 'sqlite::memory:']) {
    await assert.rejects(sqliteEventStore(url), (error) => hasCode(error, 'CONFIG_INVALID'));
  }
});

test('a file that is no database is refused and left as it is', async () => {
  const path = join(folder, 'notes.txt');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(path, 'these are notes, and rather long ones, so that SQLite looks at them twice');
  await assert.rejects(sqliteEventStore(path), (error) => hasCode(error, 'STORE_UNAVAILABLE'));
  assert.match(readFileSync(path, 'utf8'), /^these are notes/);
});

const aggregates = sqliteEventStore(join(folder, 'aggregates.db'));
after(async () => (await aggregates)[Symbol.asyncDispose]());
for (const { name, run } of snapshotStoreConformance(async () => (await aggregates).snapshots)) {
  test(`snapshots in SQLite: ${name}`, run);
}
for (const { name, run } of keyClaimsConformance(async () => (await aggregates).keyClaims)) {
  test(`key claims in SQLite: ${name}`, run);
}
