// Every place that stores data is classified in tools/erasure-table.ts. A new table, key family or file fails here until
// someone decides how the data of a person is erased from it.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { redisKeys } from '../../src/contracts/redis-keys.ts';
import { mongodbAggregateStorage } from '../../src/engines/mongodb/aggregate-storage.ts';
import { collectionsOf } from '../../src/engines/mongodb/collections.ts';
import { mongodbReadModelVersions } from '../../src/engines/mongodb/read-model-versions.ts';
import { subscriptionCollections } from '../../src/engines/mongodb/subscriptions/collections.ts';
import { openSqlite } from '../../src/engines/sqlite/open-sqlite.ts';
import { newEvent } from '../../src/testing/conformance/store/fixture.ts';
import { withErasureTable } from '../../tools/erasure-table.ts';
import { classified } from './erasure-classified.ts';

test('every table of the SQLite files is classified', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-erasure-'));
  try {
    await using db = await openSqlite(join(folder, 'events.db'));
    await db.store.append('a.b.v1-core-1', [newEvent({ headers: { dataSubject: 'ada' } })]);
    await db.keys.get('any');
    await db.breakers.list();
    await db.endpointHealth.read('any');
    await db.queue.state('any', 'any');
    for (const file of ['events.db', 'events.subject-keys.db', 'events.work.db'] as const) {
      using database = new DatabaseSync(join(folder, file), { readOnly: true });
      const tables = database
        .prepare(
          "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name",
        )
        .all()
        .map(({ name }) => String(name));
      assert.deepEqual(tables, classified(`SQLite: ${file}`));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('every key family of Redis is classified', () => {
  const families = classified('Redis: key families of `redisKeys`');
  assert.deepEqual(Object.keys(redisKeys).toSorted(), families);
});

test('every collection of MongoDB is classified', () => {
  const names: string[] = [];
  const collection = (name: string): void => void names.push(name);
  const db = { collection } as unknown as Parameters<typeof collectionsOf>[0];
  collectionsOf(db, 'events');
  subscriptionCollections(db);
  mongodbAggregateStorage(db);
  mongodbReadModelVersions(db);
  // One for each aggregate, opened with its first snapshot.
  names.push('<aggregate>_snapshots');
  assert.deepEqual(names.toSorted(), classified('MongoDB: collections'));
});

test('docs/erasure.md contains the tables', () => {
  const page = readFileSync(new URL('../../docs/erasure.md', import.meta.url), 'utf8');
  assert.equal(withErasureTable(page), page, 'run: npm run generate');
});
