import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import {
  BACKWARDS,
  binaryEvent,
  END,
  eventTypeFilter,
  type Filter,
  jsonEvent,
  KurrentDBClient,
  MaxAppendSizeExceededError,
  START,
  StreamDeletedError,
  StreamNotFoundError,
  streamNameFilter,
  WrongExpectedVersionError,
} from '@kurrent/kurrentdb-client';
import { createEnvelope } from '../../../contracts/envelope.ts';
import { openMemory } from '../../../engines/memory/index.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { kurrentStoreOptions, startKurrentServer } from '../index.ts';

interface Bench {
  readonly store: EventStore;
  readonly client: KurrentDBClient;
}

async function serve(t: TestContext): Promise<Bench> {
  const store = openMemory(kurrentStoreOptions).store;
  const server = await startKurrentServer(store, { port: 0 });
  const client = KurrentDBClient.connectionString`${server.url}&discoveryInterval=1`;
  t.after(async () => {
    await client.dispose();
    await server[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  return { store, client };
}

const counted = (index: number, type = 'counted') => jsonEvent({ type, data: { index } });
const many = (count: number) => Array.from({ length: count }, (_, index) => counted(index));

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  return Array.fromAsync(items);
}

test('JSON and binary data and metadata are returned unchanged', async (t) => {
  const { client } = await serve(t);
  const bytes = Buffer.from([0, 255, 1, 254, 13, 10]);
  const metadata = { $correlationId: 'c-1', nested: { deep: [1, 2, { three: 'drei' }] } };
  const id = randomUUID();
  const appended = await client.appendToStream('things-1', [
    jsonEvent({ id, type: 'a', data: { grüße: '€', list: [1.5, null, true] }, metadata }),
    binaryEvent({ type: 'b', data: bytes, metadata: bytes }),
  ]);
  const [a, b] = (await all(client.readStream('things-1'))).map(({ event }) => event);
  assert.deepEqual(a?.data, { grüße: '€', list: [1.5, null, true] });
  assert.deepEqual(a?.metadata, metadata);
  assert.deepEqual([a?.id, a?.revision, a?.isJson], [id, 0n, true]);
  assert.deepEqual(Buffer.from(b?.data as Uint8Array), bytes);
  assert.deepEqual(Buffer.from(b?.metadata as Uint8Array), bytes);
  assert.deepEqual(b?.position, appended.position);
});

test('reads work in both directions, from any revision, with a limit', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('things-1', many(10));
  const revisions = async (options: Parameters<KurrentDBClient['readStream']>[1]) =>
    (await all(client.readStream('things-1', options))).map(({ event }) => Number(event?.revision));
  assert.deepEqual(await revisions({ fromRevision: 3n, maxCount: 2 }), [3, 4]);
  assert.deepEqual(
    await revisions({ direction: BACKWARDS, fromRevision: END, maxCount: 2 }),
    [9, 8],
  );
  assert.deepEqual(await revisions({ direction: BACKWARDS, fromRevision: 1n }), [1, 0]);
  assert.deepEqual(await revisions({ fromRevision: 10n }), []);
  const forwards = await all(client.readAll());
  const third = forwards[3]?.event?.position;
  assert.ok(third !== undefined);
  const at = async (direction: 'forwards' | 'backwards') =>
    (await all(client.readAll({ direction, fromPosition: third, maxCount: 1 })))[0]?.event
      ?.revision;
  assert.equal(await at('forwards'), 3n);
  assert.equal(await at('backwards'), 2n);
});

test('every append method checks the expected revision', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('things-1', many(2), { streamState: 'no_stream' });
  await client.appendToStream('things-1', many(1), { streamState: 1n });
  await client.appendToStream('things-1', many(1), { streamState: 'stream_exists' });
  const conflict = { streamName: 'things-1', expectedState: 0n, actualState: 3n };
  const credentials = { username: 'admin', password: 'changeit' };
  for (const more of [{}, { credentials }]) {
    await assert.rejects(
      client.appendToStream('things-1', many(1), { streamState: 0n, ...more }),
      (error) => error instanceof WrongExpectedVersionError && includes(error, conflict),
    );
    await assert.rejects(
      client.appendToStream('none-1', many(1), { streamState: 'stream_exists', ...more }),
      (error) =>
        error instanceof WrongExpectedVersionError &&
        includes(error, { actualState: 'no_stream', expectedState: 'stream_exists' }),
    );
  }
  await assert.rejects(
    client.deleteStream('things-1', { expectedRevision: 0n }),
    (error) => error instanceof WrongExpectedVersionError && includes(error, conflict),
  );
});

test('repeating an append has no effect', async (t) => {
  const { client } = await serve(t);
  const events = many(3);
  const first = await client.appendToStream('things-1', events, { streamState: 'no_stream' });
  const again = await client.appendToStream('things-1', events, { streamState: 'no_stream' });
  assert.deepEqual(again, first);
  assert.equal((await all(client.readStream('things-1'))).length, 3);
});

test('an append without events writes nothing and returns the revision', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('things-1', many(2));
  const { nextExpectedRevision, position } = await client.appendToStream('things-1', []);
  assert.equal(nextExpectedRevision, 1n);
  const [last] = await all(
    client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }),
  );
  assert.deepEqual(position, last?.event?.position);
});

test('an append in many chunks is one append', async (t) => {
  const { client } = await serve(t);
  const events = Array.from({ length: 30 }, (_, index) =>
    jsonEvent({ type: 'large', data: { index, text: 'x'.repeat(20_000) } }),
  );
  const { nextExpectedRevision } = await client.appendToStream('things-1', events, {
    batchAppendSize: 50_000,
  });
  assert.equal(nextExpectedRevision, 29n);
  assert.equal((await all(client.readStream('things-1'))).length, 30);
});

test('an append over one mebibyte is rejected with its own error', async (t) => {
  const { client } = await serve(t);
  const large = binaryEvent({ type: 'large', data: Buffer.alloc(1_100_000) });
  for (const more of [{}, { credentials: { username: 'a', password: 'b' } }]) {
    await assert.rejects(
      client.appendToStream('things-1', [large], more),
      (error) => error instanceof MaxAppendSizeExceededError && error.maxAppendSize === 1_048_576,
    );
  }
  const fits = binaryEvent({ type: 'large', data: Buffer.alloc(1_000_000, 7) });
  await client.appendToStream('things-1', [fits]);
  const [read] = await all(client.readStream('things-1'));
  assert.equal((read?.event?.data as Uint8Array | undefined)?.length, 1_000_000);
});

test('unknown, deleted and tombstoned streams have their own errors', async (t) => {
  const { client } = await serve(t);
  for (const name of ['none-1', 'größe-1', '$ce-none', '$et-none']) {
    await assert.rejects(
      all(client.readStream(name)),
      (error) => error instanceof StreamNotFoundError && error.streamName === name,
    );
  }
  await client.appendToStream('things-1', many(2));
  const { position } = await client.deleteStream('things-1');
  assert.ok(position !== undefined);
  await assert.rejects(all(client.readStream('things-1')), StreamNotFoundError);
  const { nextExpectedRevision } = await client.appendToStream('things-1', many(1), {
    streamState: 'no_stream',
  });
  assert.equal(nextExpectedRevision, 2n);
  assert.equal((await all(client.readStream('things-1')))[0]?.event?.revision, 2n);
  const { metadata } = await client.getStreamMetadata('things-1');
  assert.deepEqual(metadata, { truncateBefore: 2 });
  await client.tombstoneStream('things-1');
  await assert.rejects(all(client.readStream('things-1')), StreamDeletedError);
  await assert.rejects(client.appendToStream('things-1', many(1)), StreamDeletedError);
  await assert.rejects(client.deleteStream('things-1'), StreamDeletedError);
  const subscription = client.subscribeToStream('things-1', { fromRevision: START });
  subscription.resume();
  const [rejected] = (await once(subscription, 'error')) as [unknown];
  assert.ok(rejected instanceof StreamDeletedError);
  await client.tombstoneStream('größe-2');
  await assert.rejects(client.deleteStream('größe-2'), StreamDeletedError);
});

test('stream metadata is returned unchanged, and its limits hide older events', async (t) => {
  const { client, store } = await serve(t);
  await client.appendToStream('things-1', many(10));
  const metadata = {
    maxCount: 3,
    truncateBefore: 8,
    maxAge: 3_600,
    cacheControl: 60,
    acl: { readRoles: ['$all'], writeRoles: ['jane'] },
    color: 'blue',
  };
  await client.setStreamMetadata('things-1', metadata);
  const read = await client.getStreamMetadata('things-1');
  assert.deepEqual(read.metadata, metadata);
  const revisions = (await all(client.readStream('things-1'))).map(({ event }) => event?.revision);
  assert.deepEqual(revisions, [8n, 9n]);
  const info = await store.streamInfo('things-1');
  assert.deepEqual(
    { maxCount: info?.metadata.maxCount, truncateBefore: info?.metadata.truncateBefore },
    { maxCount: 3, truncateBefore: 8 },
  );
});

test('category and type streams have links that resolve, and are read in pages without gaps', async (t) => {
  const { client } = await serve(t);
  for (let index = 0; index < 6; index += 1) {
    await client.appendToStream(`things-${index}`, [counted(index, index % 2 ? 'odd' : 'even')]);
  }
  const paged: unknown[] = [];
  for (let from = 0n; ;) {
    const page = await all(
      client.readStream('$ce-things', { fromRevision: from, maxCount: 4, resolveLinkTos: true }),
    );
    paged.push(...page.map(({ event }) => (event?.data as { index: number } | undefined)?.index));
    if (page.length < 4) break;
    from = (page.at(-1)?.link?.revision ?? 0n) + 1n;
  }
  assert.deepEqual(paged, [0, 1, 2, 3, 4, 5]);
  const [link] = await all(client.readStream('$et-odd', { maxCount: 1 }));
  assert.equal(link?.event?.type, '$>');
  assert.equal(Buffer.from(link?.event?.data as Uint8Array).toString(), '0@things-1');
  const last = await all(
    client.readStream('$ce-things', { direction: BACKWARDS, fromRevision: END, maxCount: 1 }),
  );
  assert.equal(Buffer.from(last[0]?.event?.data as Uint8Array).toString(), '0@things-5');
});

test('links of clients resolve, and a link without a target has no event', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('things-1', many(2));
  const link = (to: string) => binaryEvent({ type: '$>', data: Buffer.from(to) });
  await client.appendToStream('links-1', [link('1@things-1'), link('7@things-1')]);
  const [one, dangling] = await all(client.readStream('links-1', { resolveLinkTos: true }));
  assert.deepEqual([one?.event?.streamId, one?.link?.revision], ['things-1', 0n]);
  assert.deepEqual([dangling?.event, dangling?.link?.revision], [undefined, 1n]);
  const [plain] = await all(client.readStream('links-1'));
  assert.equal(plain?.event?.type, '$>');
});

test('a subscription catches up, reports it, and follows', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('things-1', many(3));
  const subscription = client.subscribeToStream('things-1', { fromRevision: 0n });
  const seen: unknown[] = [];
  subscription.on('data', ({ event }: { event?: { revision: bigint } }) => {
    seen.push(Number(event?.revision));
  });
  const [where] = (await once(subscription, 'caughtUp')) as [{ revision: bigint }];
  assert.equal(where.revision, 2n);
  assert.deepEqual(seen, [1, 2]);
  const data = once(subscription, 'data');
  await client.appendToStream('things-1', many(1));
  await data;
  assert.deepEqual(seen, [1, 2, 3]);
  await subscription.unsubscribe();
});

test('a filtered subscription gets what matches, and checkpoints for the rest', async (t) => {
  const { client } = await serve(t);
  const points: bigint[] = [];
  const filter = eventTypeFilter({
    regex: '^wanted',
    checkpointInterval: 2,
    maxSearchWindow: 5,
    checkpointReached: async (_subscription, position) => void points.push(position.commit),
  });
  await client.appendToStream('noise-1', many(25));
  await client.appendToStream('things-1', [counted(1, 'wanted')]);
  const subscription = client.subscribeToAll({ fromPosition: START, filter });
  const [first] = (await once(subscription, 'data')) as [{ event?: { type: string } }];
  assert.equal(first.event?.type, 'wanted');
  assert.deepEqual(points, [10n, 20n]);
  const next = once(subscription, 'data');
  await client.appendToStream('noise-1', many(25));
  await client.appendToStream('things-1', [counted(2, 'wanted')]);
  await next;
  assert.deepEqual(points, [10n, 20n, 30n, 40n, 50n]);
  await subscription.unsubscribe();
});

test('filters select events by stream or type, by prefix or regular expression', async (t) => {
  const { client } = await serve(t);
  await client.appendToStream('a-1', [counted(0, 'x.one'), counted(1, 'y.one')]);
  await client.appendToStream('b-1', [counted(2, 'x.two')]);
  const types = async (filter: Filter) =>
    (await all(client.readAll({ filter }))).map(({ event }) => event?.type);
  assert.deepEqual(await types(eventTypeFilter({ prefixes: ['x.'] })), ['x.one', 'x.two']);
  assert.deepEqual(await types(eventTypeFilter({ regex: 'one$' })), ['x.one', 'y.one']);
  assert.deepEqual(await types(streamNameFilter({ prefixes: ['b', 'c'] })), ['x.two']);
  assert.deepEqual(await types(streamNameFilter({ regex: '^a-' })), ['x.one', 'y.one']);
  assert.deepEqual(await types(eventTypeFilter({ regex: '^x\\.(?!two)' })), ['x.one']);
  await assert.rejects(types(eventTypeFilter({ regex: '(a+)+\\1$' })));
});

test('an event of Millrace has its payload as data and its envelope as metadata', async (t) => {
  const { client, store } = await serve(t);
  const envelope = createEnvelope(
    { type: 'payment.completed.v1', payload: { amount: 12.5 } },
    {
      tenant: 'core',
      aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' },
      correlationId: 'flow-1',
    },
  );
  await store.append('paymenthub.payment.v1-core-p-1', [envelope]);
  const [read] = await all(client.readStream('paymenthub.payment.v1-core-p-1'));
  assert.deepEqual(read?.event?.data, { amount: 12.5 });
  const metadata = read?.event?.metadata as Record<string, unknown>;
  assert.deepEqual([metadata['$correlationId'], metadata['tenant']], ['flow-1', 'core']);
});

test('an event of a client is an ordinary event for readers of the store', async (t) => {
  const { client, store } = await serve(t);
  const stream = 'paymenthub.payment.v1-core-p-1';
  await client.appendToStream(stream, [
    jsonEvent({
      type: 'payment.completed.v1',
      data: { amount: 1 },
      metadata: { $correlationId: 'flow-1', $causationId: 'cause-1', other: true },
    }),
  ]);
  const [event] = await store.readStream(stream).toArray();
  assert.deepEqual(event?.payload, { amount: 1 });
  assert.deepEqual(
    [event?.correlationId, event?.causationId, event?.tenant, event?.aggregate.id],
    ['flow-1', 'cause-1', 'core', 'p-1'],
  );
});

function includes(actual: object, expected: Readonly<Record<string, unknown>>): boolean {
  for (const [name, value] of Object.entries(expected)) {
    assert.deepEqual((actual as Record<string, unknown>)[name], value, name);
  }
  return true;
}
