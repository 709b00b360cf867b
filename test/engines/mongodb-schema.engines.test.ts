// The documents and indexes in the database have exactly the fields of the architecture document.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoClient, type Db, type Document } from 'mongodb';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { openMongo } from '../../src/engines/mongodb/index.ts';
import { newEvent, newEvents, readLocations, streamName } from '../store/rig.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

/** The indexes of the architecture document; ids of aggregates are unique per stream only. */
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
      aggregate: { bc: 'rig', type: 'item', id: 'chat-uuid' },
      payload: { messageId: 'msg-uuid', content: 'Закончил работу\n#status Done' },
    });
    await store.append(streamName('chat-uuid'), [newEvent('first'), event]);
    await store.head();
    const [document] = await db.collection('events').find({ version: 2 }).toArray();
    const { stream, position, tenant, category, recordedAt, ...shape } = document as Document;
    assert.deepEqual(shape, {
      _id: 'event-uuid',
      aggregateId: 'chat-uuid',
      aggregateType: 'item',
      eventType: 'item.created.v1',
      eventData: { messageId: 'msg-uuid', content: 'Закончил работу\n#status Done' },
      version: 2,
      timestamp: new Date('2025-09-30T10:00:00.000Z'),
      metadata: {
        correlationId: 'req-uuid',
        causationId: 'parent-event-id',
        userId: 'user-uuid',
        aggregate: { bc: 'rig', type: 'item', id: 'chat-uuid' },
      },
    });
    assert.deepEqual(
      { stream, position, tenant, category },
      { stream: streamName('chat-uuid'), position: 2, tenant: 'core', category: 'rig.item.v1' },
    );
    assert.ok(recordedAt instanceof Date);
    assert.equal(await db.collection('events').countDocuments({ aggregateId: 'chat-uuid' }), 1);
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
        { name, key: index.key },
      );
    }
    const names = new Set(found.map(({ name }) => name));
    const ours = [
      'stream_1_version_1',
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
    // The same id in two streams.
    await store.append(streamName('b'), newEvents('f', 3));
    assert.equal((await readLocations(store)).length, 6);
    // Our indexes are one for streams, one for the order, three for filters, and one that not every server supports.
    const added = (await indexesOf(db)).length - before;
    assert.ok(added === 5 || added === 6, `${added} indexes were added`);
  });

  test('events of an earlier version, whose aggregate id was the stream name, stay readable and are found by their id', async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    const former = await openMongo(db);
    await former.store.append(streamName('a'), newEvents('e', 3));
    await former.store.head();
    await former[Symbol.asyncDispose]();
    const events = db.collection('events');
    await events.updateMany({}, { $set: { aggregateId: streamName('a') }, $unset: { stream: '' } });
    await events.dropIndex('stream_1_version_1');
    await events.dropIndex('aggregateId_1_version_1');
    await events.createIndex({ aggregateId: 1, version: 1 }, { unique: true });

    await using engine = await openMongo(db);
    await engine.store.append(streamName('a'), newEvents('f', 2), { expected: 2 });
    const revisions = (await engine.store.readStream(streamName('a')).toArray()).map(
      ({ revision }) => revision,
    );
    assert.deepEqual(revisions, [0, 1, 2, 3, 4]);
    assert.equal(await events.countDocuments({ aggregateId: 'i-1' }), 5);
  });

  test('rejects a store that was not migrated, and names the missing indexes', async () => {
    await using client = new MongoClient(target.url());
    const db = client.db(target.newDatabase());
    await db.createCollection('events');
    const open = (): Promise<unknown> => openMongo(db, { migrate: 'off' });
    const error = await rejectsWith(open, 'CONFIG_INVALID');
    assert.match(error.message, /stream.*position.*migrate/);
    await using engine = await openMongo(db);
    await using again = await openMongo(db, { migrate: 'off' });
    assert.equal(await again.store.head(), await engine.store.head());
  });
});
