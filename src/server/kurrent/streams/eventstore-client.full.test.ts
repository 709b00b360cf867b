// In a separate process, because the two official clients share a global and break each other.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import {
  EventStoreDBClient,
  jsonEvent,
  persistentSubscriptionToStreamSettingsFromDefaults,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { openMemory } from '../../../engines/memory/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../index.ts';

async function serve(t: TestContext): Promise<EventStoreDBClient> {
  const store = openMemory(kurrentStoreOptions).store;
  const server = await startKurrentServer(store, { port: 0 });
  const client = EventStoreDBClient.connectionString`esdb://127.0.0.1:${server.port}?tls=false`;
  t.after(async () => {
    await client.dispose();
    await server[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  return client;
}

const many = (count: number) =>
  Array.from({ length: count }, (_, index) => jsonEvent({ type: 'counted', data: { index } }));

test('the older client appends, reads and deletes', async (t) => {
  const client = await serve(t);
  const { nextExpectedRevision } = await client.appendToStream('things-1', many(3));
  assert.equal(nextExpectedRevision, 2n);
  const read = await Array.fromAsync(client.readStream('things-1'));
  assert.deepEqual(
    read.map(({ event }) => event?.data),
    [{ index: 0 }, { index: 1 }, { index: 2 }],
  );
  await assert.rejects(
    client.appendToStream('things-1', many(1), { expectedRevision: 'no_stream' }),
    WrongExpectedVersionError,
  );
  await assert.rejects(Array.fromAsync(client.readStream('none-1')), StreamNotFoundError);
  await client.tombstoneStream('things-1');
  await assert.rejects(Array.fromAsync(client.readStream('things-1')), StreamDeletedError);
});

test('the older client subscribes, also in a group', async (t) => {
  const client = await serve(t);
  await client.appendToStream('things-1', many(2));
  const subscription = client.subscribeToStream('things-1', { fromRevision: START });
  const seen: unknown[] = [];
  for await (const { event } of subscription) {
    seen.push(Number(event?.revision));
    if (seen.length === 2) await client.appendToStream('things-1', many(1));
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, [0, 1, 2]);
  const settings = persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START });
  await client.createPersistentSubscriptionToStream('things-1', 'g', settings);
  const group = client.subscribeToPersistentSubscriptionToStream('things-1', 'g');
  const [first] = (await once(group, 'data')) as [Parameters<typeof group.ack>[0]];
  assert.equal(first.event?.revision, 0n);
  await group.ack(first);
  await group.unsubscribe();
});
