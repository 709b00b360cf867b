// The suite on a fake of MongoDB's protocol: as a replica set with transactions, and as a single server without them.
// storage.engines.test.ts runs it on FerretDB and on a given MongoDB.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { MongoClient, type ClientSession, type Document } from 'mongodb';
import { hasCode } from '../../../foundation/error.ts';
import { toSequence } from '../../../store/position.ts';
import {
  acquireShard,
  at,
  newLetter,
  takeOverShard,
} from '../../../testing/conformance/subscriptions/fixture.ts';
import { subscriptionStorageConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { startFakeMongodb } from '../../../testing/support/mongodb/fake-mongodb.ts';
import { migrateSubscriptions, subscriptionCollections } from './collections.ts';
import { mongodbSubscriptionStorage } from './storage.ts';

/** `update dead_letter_queue notes`; undefined: not a write. */
function changeOf(name: string, command: Document): string | undefined {
  const named = (fields: object = {}): string => Object.keys(fields).toSorted().join();
  if (name === 'insert') return `insert ${command['insert']}`;
  if (name === 'delete') {
    const [{ q }] = command['deletes'] as readonly [{ readonly q: object }];
    return `delete ${command['delete']} ${named(q)}`;
  }
  if (name !== 'update') return undefined;
  const [{ u }] = command['updates'] as readonly [{ readonly u: { readonly $set?: object } }];
  return `update ${command['update']} ${named(u.$set ?? u)}`;
}

async function opened(isReplicated: boolean) {
  const server = await startFakeMongodb({ isReplicated });
  const client = await MongoClient.connect(server.url, { monitorCommands: true });
  /** Another program, whose writes are not noted. */
  const other = await MongoClient.connect(server.url);
  /** What was written outside of a transaction, and by which fields. */
  const apart = new Set<string>();
  client.on('commandStarted', ({ commandName, command }) => {
    const change = changeOf(commandName, command);
    if (change !== undefined && command['autocommit'] !== false) apart.add(change);
  });
  const db = client.db();
  await migrateSubscriptions(subscriptionCollections(db));
  return {
    db,
    raw: other.db(),
    apart,
    storage: mongodbSubscriptionStorage(db, { hasTransactions: isReplicated }),
    async [Symbol.asyncDispose]() {
      await client.close();
      await other.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

const replicaSet = await opened(true);
const singleServer = await opened(false);
after(async () => {
  for (const each of [replicaSet, singleServer]) await each[Symbol.asyncDispose]();
});

for (const [title, isReplicated, { db, raw, storage, apart }] of [
  ['a replica set', true, replicaSet],
  ['a single server', false, singleServer],
] as const) {
  describe(`subscriptions on a fake of MongoDB, as ${title}`, () => {
    const effects = db.collection<{ key: string }>('effects');
    const cases = subscriptionStorageConformance<ClientSession>({
      capabilities: storage.capabilities,
      open: async () => storage,
      second: async () => mongodbSubscriptionStorage(db, { hasTransactions: isReplicated }),
      async damage(subscription, json) {
        const set = (name: string, filter: object, fields: object) =>
          raw.collection(name).updateMany(filter, { $set: fields });
        const broken = { payloadJson: json, history: json, cause: json };
        await set('dead_letter_queue', { handler: subscription }, broken);
        await set('subscription_waiting', { subscription }, { history: json });
        const subscriptions = raw.collection<{ _id: string }>('subscriptions');
        await subscriptions.updateOne({ _id: subscription }, { $set: { filter: json } });
      },
      effects: {
        async write(session, key) {
          await effects.insertOne({ key }, { session });
        },
        count: (key) => effects.countDocuments({ key }),
      },
    });
    for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);

    test('the owner of a shard writes marks, dead letters and waiting events in its transaction', () => {
      if (!isReplicated) return assert.ok(apart.has('insert subscription_marks'));
      // Marks below the checkpoint have no effect, and notes are not part of a delivery.
      assert.deepEqual(
        [...apart].filter((each) => /marks|dead_letter|blocked|waiting/.test(each)).toSorted(),
        ['delete subscription_marks checkpoint,position,shardId', 'update dead_letter_queue notes'],
      );
    });
  });
}

test('a takeover waits for the commit of the former owner, and sees its mark', async () => {
  await using mongodb = await opened(true);
  const { db, storage } = mongodb;
  const late = await acquireShard(storage);
  const effect = await storage.begin(late);
  await db.collection('effects').insertOne({ key: 'late' }, { session: effect.transaction });
  await storage.leases.release(late);
  const [settled, fence] = await Promise.all([
    effect.commit({ kind: 'delivered', positions: [at(3)] }),
    takeOverShard(storage, late),
  ]);
  const { done } = await storage.checkpoints.load(fence);
  assert.deepEqual([settled, done], ['settled', [at(3)]]);
});

test('a dead letter whose mark cannot be written is not stored', async () => {
  await using mongodb = await opened(true);
  const { db, storage } = mongodb;
  const fence = await acquireShard(storage);
  const letter = newLetter(fence);
  const { marks, letters } = subscriptionCollections(db);
  await marks.createIndex({ position: 1 }, { unique: true });
  const position = toSequence(letter.position);
  await marks.insertOne({ _id: 'another', shardId: 'another', position, checkpoint: 0 });
  await assert.rejects(storage.deadLetters.add(fence, letter));
  assert.equal(await letters.countDocuments({}), 0);
});

test('a server without transactions names the capability', async () => {
  await using mongodb = await opened(false);
  const { storage } = mongodb;
  const fence = await acquireShard(storage);
  await assert.rejects(storage.begin(fence), (error) => {
    assert.ok(hasCode(error, 'NOT_SUPPORTED'));
    return (error as { details: { capability?: unknown } }).details.capability === 'transactions';
  });
});

test('processed_events has the document and the indexes of the architecture document', async () => {
  await using mongodb = await opened(true);
  const { db, storage } = mongodb;
  const ttlMs = 7 * 24 * 3_600_000;
  const key = { eventId: 'event-uuid', handler: 'TagParserService' };
  const claim = await storage.processed.claim(key, { leaseMs: 1_000, ttlMs });
  assert.ok(claim.kind === 'claimed');
  await storage.processed.confirm(key, claim.token);
  const found = await db
    .collection('processed_events')
    .findOne({ eventId: 'event-uuid', handlerName: 'TagParserService' });
  assert.ok(found?.['processedAt'] instanceof Date && found['expiresAt'] instanceof Date);
  const indexes = await db.collection('processed_events').listIndexes().toArray();
  const described = indexes.map(({ key: fields, unique, expireAfterSeconds }) => ({
    fields: fields as unknown,
    unique: unique as unknown,
    expireAfterSeconds: expireAfterSeconds as unknown,
  }));
  assert.deepEqual(described.slice(1), [
    { fields: { eventId: 1, handlerName: 1 }, unique: true, expireAfterSeconds: undefined },
    { fields: { expiresAt: 1 }, unique: undefined, expireAfterSeconds: 0 },
  ]);
});

test('dead_letter_queue has the twelve fields of the architecture document', async () => {
  await using mongodb = await opened(true);
  const { db, storage } = mongodb;
  const fence = await acquireShard(storage);
  const { letter } = await storage.deadLetters.add(fence, newLetter(fence));
  const found = await db.collection('dead_letter_queue').findOne({ eventId: letter.eventId });
  const documented = Object.fromEntries(Object.entries(found ?? {}).slice(0, 12));
  assert.deepEqual(documented, {
    _id: letter.id,
    eventId: letter.eventId,
    eventType: 'account.credited.v1',
    aggregateId: 'a-1',
    payload: letter.payload,
    error: letter.error,
    attempts: 6,
    createdAt: new Date('2025-09-30T10:00:00.123Z'),
    status: 'pending',
    replayedAt: null,
    replayedBy: null,
    notes: '',
  });
});

test('the dead letters of two handlers are stored although the index of the document was created', async () => {
  await using mongodb = await opened(true);
  const { db, storage } = mongodb;
  const letters = db.collection('dead_letter_queue');
  await letters.createIndex({ eventId: 1 }, { unique: true });
  await migrateSubscriptions(subscriptionCollections(db));
  const eventId = randomUUID();
  for (const fence of [await acquireShard(storage), await acquireShard(storage)]) {
    await storage.deadLetters.add(fence, newLetter(fence, { eventId }));
  }
  assert.equal(await letters.countDocuments({ eventId }), 2);
});
