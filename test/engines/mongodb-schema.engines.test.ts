// The documents and indexes in the database have exactly the fields of the architecture document.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoClient, type Db, type Document } from 'mongodb';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import { newEvent, newEvents, readLocations, streamName } from '../store/rig.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

/** The indexes of the architecture document. */
const documented = [
  { key: { aggregateId: 1, version: 1 }, unique: true },
  { key: { timestamp: 1 } },
  { key: { eventType: 1, timestamp: 1 } },
  { key: { aggregateType: 1, timestamp: 1 } },
];

onEachMongodb('the collection of events', (target) => {
  async function indexesOf(db: Db) {
    const found = await db.collection('events').listIndexes().toArray();
    return found.map(({ name, key, unique }) => ({
      name: String(name),
      key: key as Record<string, number>,
      ...(unique === true ? { unique } : {}),
    }));
  }

  test('events are stored as the documents that the architecture document describes', async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    await using engine = await openMongo(db);
    const { store } = engine;
    const event = newEvent('event-uuid', {
      correlationId: 'req-uuid',
      causationId: 'parent-event-id',
      user: { id: 'user-uuid' },
      payload: { messageId: 'msg-uuid', content: 'Закончил работу\n#status Done' },
    });
    await store.append(streamName('chat-uuid'), [newEvent('first'), event]);
    await store.head();
    const [document] = await db.collection('events').find({ version: 2 }).toArray();
    const { position, tenant, category, recordedAt, ...shape } = document as Document;
    assert.deepEqual(shape, {
      _id: 'event-uuid',
      aggregateId: streamName('chat-uuid'),
      aggregateType: 'item',
      eventType: 'item.created.v1',
      eventData: { messageId: 'msg-uuid', content: 'Закончил работу\n#status Done' },
      version: 2,
      timestamp: new Date('2025-09-30T10:00:00.000Z'),
      metadata: {
        correlationId: 'req-uuid',
        causationId: 'parent-event-id',
        userId: 'user-uuid',
        aggregate: { bc: 'rig', type: 'item', id: 'i-1' },
      },
    });
    assert.deepEqual(
      { position, tenant, category },
      { position: 2, tenant: 'core', category: 'rig.item.v1' },
    );
    assert.ok(recordedAt instanceof Date);
  });

  test("the indexes are the four of the architecture document, under MongoDB's default names, and those of Millrace", async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    await (await openMongo(db))[Symbol.asyncDispose]();
    const found = await indexesOf(db);
    for (const index of documented) {
      const name = Object.entries(index.key).flat().join('_');
      assert.deepEqual(
        found.find((each) => each.name === name),
        { name, ...index },
      );
    }
    const names = new Set(found.map(({ name }) => name));
    const ours = [
      'position_1',
      'eventType_1_position_1',
      'category_1_position_1',
      'tenant_1_position_1',
    ];
    for (const name of ours) assert.ok(names.has(name), name);
  });

  test('uses a collection that was created by the commands of the architecture document', async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    for (const { key, unique = false } of documented) {
      await db.collection('events').createIndex(key, { unique });
    }
    const before = (await indexesOf(db)).length;
    await using engine = await openMongo(db);
    const { store } = engine;
    await store.append(streamName('a'), newEvents('e', 3));
    assert.equal((await readLocations(store)).length, 3);
    // Our indexes are one for the order, three for filters, and one that not every server supports.
    const added = (await indexesOf(db)).length - before;
    assert.ok(added === 4 || added === 5, `${added} indexes were added`);
  });

  test('rejects a store that was not migrated, and names the missing indexes', async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    await db.createCollection('events');
    const open = (): Promise<unknown> => openMongo(db, { migrate: 'off' });
    const error = await rejectsWith(open, 'CONFIG_INVALID');
    assert.match(error.message, /aggregateId.*position.*migrate/);
    await using engine = await openMongo(db);
    await using again = await openMongo(db, { migrate: 'off' });
    assert.equal(await again.store.head(), await engine.store.head());
  });
});
