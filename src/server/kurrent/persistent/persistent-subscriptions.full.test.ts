import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import {
  binaryEvent,
  END,
  eventTypeFilter,
  jsonEvent,
  KurrentDBClient,
  persistentSubscriptionToAllSettingsFromDefaults,
  persistentSubscriptionToStreamSettingsFromDefaults,
  PersistentSubscriptionDoesNotExistError,
  PersistentSubscriptionExistsError,
  PersistentSubscriptionMaximumSubscribersReachedError,
  PersistentSubscriptionDroppedError,
  START,
  type PersistentSubscriptionToStream,
} from '@kurrent/kurrentdb-client';
import { openMemory } from '../../../engines/memory/index.ts';
import type { EventStore } from '../../../store/event-store.ts';
import {
  kurrentStoreOptions,
  startKurrentServer,
  type KurrentLimits,
  type KurrentServer,
} from '../index.ts';

interface Bench {
  readonly store: EventStore;
  readonly server: KurrentServer;
  readonly client: KurrentDBClient;
  restart(): Promise<Bench>;
}

async function serve(
  t: TestContext,
  store?: EventStore,
  limits: Partial<KurrentLimits> = {},
): Promise<Bench> {
  const backing = store ?? openMemory(kurrentStoreOptions).store;
  const server = await startKurrentServer(backing, { port: 0, limits });
  const client = KurrentDBClient.connectionString`${server.url}&discoveryInterval=1`;
  const stop = async (): Promise<void> => {
    await client.dispose();
    await server[Symbol.asyncDispose]();
  };
  t.after(async () => {
    await stop();
    await backing[Symbol.asyncDispose]();
  });
  const restart = async (): Promise<Bench> => {
    await stop();
    return serve(t, backing);
  };
  return { store: backing, server, client, restart };
}

const settings = persistentSubscriptionToStreamSettingsFromDefaults;

async function append(client: KurrentDBClient, stream: string, count: number, from = 0) {
  const events = Array.from({ length: count }, (_, index) =>
    jsonEvent({ type: 'counted', data: { index: from + index } }),
  );
  await client.appendToStream(stream, events);
}

type Delivered = Awaited<ReturnType<typeof take>>[number];

/** The next messages; `answer` is called for each before the next one. */
async function take(
  subscription: PersistentSubscriptionToStream,
  count: number,
  acknowledge: (event: Delivery) => Promise<void> = (event) => subscription.ack(event),
) {
  const taken: Delivery[] = [];
  for (let left = count; left > 0; left -= 1) {
    const event = (subscription.read() ?? (await nextOf(subscription))) as Delivery;
    taken.push(event);
    await acknowledge(event);
  }
  return taken;
}

type Delivery = Parameters<PersistentSubscriptionToStream['ack']>[0] & {
  readonly retryCount: number;
};

async function nextOf(subscription: PersistentSubscriptionToStream): Promise<unknown> {
  for (;;) {
    const event: unknown = subscription.read();
    if (event !== null) return event;
    await once(subscription, 'readable');
  }
}

const indexes = (events: readonly Delivered[]): unknown[] =>
  events.map(({ event }) => (event?.data as { index: number } | undefined)?.index);

test('a group delivers stored and new events, and shows its settings', async (t) => {
  const { client } = await serve(t);
  await append(client, 'orders-1', 3);
  await client.createPersistentSubscriptionToStream(
    'orders-1',
    'g',
    settings({ startFrom: START }),
  );
  const subscription = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  assert.deepEqual(indexes(await take(subscription, 3)), [0, 1, 2]);
  await append(client, 'orders-1', 2, 3);
  assert.deepEqual(indexes(await take(subscription, 2)), [3, 4]);
  const info = await client.getPersistentSubscriptionToStreamInfo('orders-1', 'g');
  assert.equal(info.settings.startFrom, START);
  assert.equal(info.connections.length, 1);
  assert.equal(info.stats.totalItems, 5n);
  assert.equal(info.stats.lastKnownEventRevision, 4n);
  const listed = await client.listPersistentSubscriptionsToStream('orders-1');
  assert.deepEqual(
    listed.map(({ groupName }) => groupName),
    ['g'],
  );
  assert.equal((await client.listAllPersistentSubscriptions()).length, 1);
  await subscription.unsubscribe();
});

test('a group that starts at the end gets only events after its creation', async (t) => {
  const { client } = await serve(t);
  await append(client, 'orders-2', 3);
  await client.createPersistentSubscriptionToStream('orders-2', 'g', settings({ startFrom: END }));
  await append(client, 'orders-2', 2, 3);
  const subscription = client.subscribeToPersistentSubscriptionToStream('orders-2', 'g');
  assert.deepEqual(indexes(await take(subscription, 2)), [3, 4]);
  await subscription.unsubscribe();
});

test('a group of a category delivers links that resolve', async (t) => {
  const { client } = await serve(t);
  await client.createPersistentSubscriptionToStream(
    '$ce-orders',
    'g',
    settings({ startFrom: START, resolveLinkTos: true }),
  );
  await append(client, 'orders-1', 1, 0);
  await append(client, 'orders-2', 1, 1);
  const subscription = client.subscribeToPersistentSubscriptionToStream('$ce-orders', 'g');
  const taken = await take(subscription, 2);
  assert.deepEqual(indexes(taken), [0, 1]);
  assert.deepEqual(
    taken.map(({ link, event }) => [link?.streamId, event?.streamId]),
    [
      ['$ce-orders', 'orders-1'],
      ['$ce-orders', 'orders-2'],
    ],
  );
  await subscription.unsubscribe();
});

test('a group of a tenant’s stream does not resolve links to events of other tenants', async (t) => {
  const { client } = await serve(t);
  const stream = (tenant: string): string => `banking.account.v1-${tenant}-1`;
  await append(client, stream('other'), 1);
  await append(client, stream('core'), 1);
  const link = (to: string) => binaryEvent({ type: '$>', data: Buffer.from(`0@${to}`) });
  const links = 'banking.link.v1-core-1';
  await client.appendToStream(links, [link(stream('other')), link(stream('core'))]);
  const resolving = settings({ startFrom: START, resolveLinkTos: true });
  await client.createPersistentSubscriptionToStream(links, 'g', resolving);
  const subscription = client.subscribeToPersistentSubscriptionToStream(links, 'g');
  const taken = await take(subscription, 2);
  assert.deepEqual(
    taken.map(({ event }) => event?.streamId),
    [undefined, stream('core')],
  );
  await subscription.unsubscribe();
});

test('a group of $all delivers the events that match its filter', async (t) => {
  const { client } = await serve(t);
  await append(client, 'orders-1', 2);
  await client.createPersistentSubscriptionToAll(
    'g',
    persistentSubscriptionToAllSettingsFromDefaults({ startFrom: START }),
    { filter: eventTypeFilter({ prefixes: ['wanted'] }) },
  );
  await client.appendToStream('orders-1', [jsonEvent({ type: 'wanted.1', data: { index: 7 } })]);
  const subscription = client.subscribeToPersistentSubscriptionToAll('g');
  const event = await nextOf(subscription);
  assert.equal((event as Delivery).event?.type, 'wanted.1');
  await subscription.ack(event as Delivery);
  const info = await client.getPersistentSubscriptionToAllInfo('g');
  assert.equal(info.settings.startFrom, START);
  await subscription.unsubscribe();
});

test('a retried event has its retry count, and is parked after the last retry', async (t) => {
  const { client } = await serve(t);
  await append(client, 'orders-1', 1);
  await client.createPersistentSubscriptionToStream(
    'orders-1',
    'g',
    settings({ startFrom: START, maxRetryCount: 2 }),
  );
  const subscription = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  const tries = await take(subscription, 3, (event) => subscription.nack('retry', 'no', event));
  assert.deepEqual(
    tries.map(({ retryCount }) => retryCount),
    [0, 1, 2],
  );
  const parked = '$persistentsubscription-orders-1::g-parked';
  const link = await eventually(async () => {
    for await (const { event } of client.readStream(parked)) return event;
    return undefined;
  });
  assert.equal(link.type, '$>');
  assert.equal(Buffer.from(link.data as Uint8Array).toString(), '0@orders-1');
  const info = await client.getPersistentSubscriptionToStreamInfo('orders-1', 'g');
  assert.equal(info.stats.parkedMessageCount, 1n);

  await client.replayParkedMessagesToStream('orders-1', 'g');
  const [again] = await take(subscription, 1);
  assert.equal(again?.event?.revision, 0n);
  await eventually(async () => {
    const later = await client.getPersistentSubscriptionToStreamInfo('orders-1', 'g');
    return later.stats.parkedMessageCount === 0n ? true : undefined;
  });
  await subscription.unsubscribe();
});

test('messages of a lost consumer go to another one', async (t) => {
  const { client } = await serve(t);
  await append(client, 'orders-1', 2);
  await client.createPersistentSubscriptionToStream(
    'orders-1',
    'g',
    settings({ startFrom: START }),
  );
  const first = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  await take(first, 2, async () => undefined);
  await first.unsubscribe();
  const second = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  assert.deepEqual(indexes(await take(second, 2)), [0, 1]);
  await second.unsubscribe();
});

test('groups and checkpoints survive a restart of the server', async (t) => {
  const bench = await serve(t);
  await append(bench.client, 'orders-1', 5);
  await bench.client.createPersistentSubscriptionToStream(
    'orders-1',
    'g',
    settings({ startFrom: START, checkPointLowerBound: 1, checkPointUpperBound: 1 }),
  );
  const before = bench.client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  before.on('error', () => undefined);
  await take(before, 3);
  await eventually(async () => {
    const info = await bench.client.getPersistentSubscriptionToStreamInfo('orders-1', 'g');
    return info.stats.lastCheckpointedEventRevision === 2n ? true : undefined;
  });
  const { client } = await bench.restart();
  const after = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g');
  assert.deepEqual(indexes(await take(after, 2)), [3, 4]);
  await after.unsubscribe();
});

test('invalid requests are rejected with the errors of the client', async (t) => {
  const { client } = await serve(t);
  const create = (): Promise<void> =>
    client.createPersistentSubscriptionToStream('s', 'g', settings({ maxSubscriberCount: 1 }));
  await create();
  await assert.rejects(create(), PersistentSubscriptionExistsError);
  const missing = PersistentSubscriptionDoesNotExistError;
  await assert.rejects(client.deletePersistentSubscriptionToStream('s', 'other'), missing);
  await assert.rejects(client.getPersistentSubscriptionToStreamInfo('s', 'other'), missing);
  await assert.rejects(
    client.updatePersistentSubscriptionToStream('s', 'other', settings()),
    missing,
  );
  await assert.rejects(client.replayParkedMessagesToStream('s', 'other'), missing);
  const lost = client.subscribeToPersistentSubscriptionToStream('s', 'other');
  const [error] = (await once(lost, 'error')) as [unknown];
  assert.ok(error instanceof missing);

  const first = client.subscribeToPersistentSubscriptionToStream('s', 'g');
  first.resume();
  await once(first, 'confirmation');
  const second = client.subscribeToPersistentSubscriptionToStream('s', 'g');
  second.resume();
  const [tooMany] = (await once(second, 'error')) as [unknown];
  assert.ok(tooMany instanceof PersistentSubscriptionMaximumSubscribersReachedError);

  const dropped = once(first, 'error');
  await client.updatePersistentSubscriptionToStream('s', 'g', settings({ maxRetryCount: 3 }));
  assert.ok((await dropped)[0] instanceof PersistentSubscriptionDroppedError);
  const info = await client.getPersistentSubscriptionToStreamInfo('s', 'g');
  assert.equal(info.settings.maxRetryCount, 3);
  await client.deletePersistentSubscriptionToStream('s', 'g');
  await assert.rejects(client.getPersistentSubscriptionToStreamInfo('s', 'g'), missing);
});

/** Polls until there is a result. */
async function eventually<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 500; tries += 1) {
    const result = await read();
    if (result !== undefined) return result;
    await new Promise(setImmediate);
  }
  throw new assert.AssertionError({ message: 'no result after 500 attempts' });
}

test('a group with a consumer that acknowledges nothing holds a limited number of bytes', async (t) => {
  const { client } = await serve(t);
  const text = 'x'.repeat(800_000);
  for (let index = 0; index < 24; index += 1) {
    await client.appendToStream('orders-1', jsonEvent({ type: 'counted', data: { index, text } }));
  }
  const started = settings({ startFrom: START });
  await client.createPersistentSubscriptionToStream('orders-1', 'g', started);
  const options = { bufferSize: 1_000 };
  const reading = client.subscribeToPersistentSubscriptionToStream('orders-1', 'g', options);
  const unacked = await take(reading, 10, async () => undefined);
  const { stats } = await client.getPersistentSubscriptionToStreamInfo('orders-1', 'g');
  // 16 MiB with two bytes for each character are 11 messages; then comes the page that reaches this size.
  assert.ok(stats.totalInFlightMessages <= 13, `${stats.totalInFlightMessages} messages`);
  for (const event of unacked) await reading.ack(event);
  assert.deepEqual(indexes(await take(reading, 14)).at(-1), 23);
});

test('the size of the messages of all groups is limited, and each group can still deliver', async (t) => {
  const { client } = await serve(t, undefined, { groupBytesMax: 3_000_000 });
  const text = 'x'.repeat(800_000);
  for (let index = 0; index < 6; index += 1) {
    await client.appendToStream('orders-1', jsonEvent({ type: 'counted', data: { index, text } }));
  }
  const follow = async (group: string): Promise<PersistentSubscriptionToStream> => {
    const started = settings({ startFrom: START });
    await client.createPersistentSubscriptionToStream('orders-1', group, started);
    return client.subscribeToPersistentSubscriptionToStream('orders-1', group, { bufferSize: 100 });
  };
  const inFlight = async (group: string): Promise<number> =>
    (await client.getPersistentSubscriptionToStreamInfo('orders-1', group)).stats
      .totalInFlightMessages;
  const first = await follow('a');
  await take(first, 2, async () => undefined);
  const second = await follow('b');
  const held = await take(second, 2, async () => undefined);
  for (let count = 0; count < 20; count += 1) {
    const counts = [await inFlight('a'), await inFlight('b')];
    // One page of each group; without the limit, all six.
    assert.deepEqual(counts, [2, 2]);
  }
  for (const event of held) await second.ack(event);
  assert.deepEqual(indexes(await take(second, 4)), [2, 3, 4, 5]);
});
