import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  AppendConsistencyViolationError,
  AppendRecordSizeExceededError,
  binaryEvent,
  jsonEvent,
  KurrentDBClient,
  STREAM_STATE,
  type StreamStateCheck,
  StreamTombstonedError,
  TransactionMaxSizeExceededError,
  WrongExpectedVersionError,
} from '@kurrent/kurrentdb-client';
import { openMemory } from '../../../engines/memory/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../index.ts';

async function serve(t: TestContext): Promise<KurrentDBClient> {
  const store = openMemory(kurrentStoreOptions).store;
  const server = await startKurrentServer(store, { port: 0 });
  const client = KurrentDBClient.connectionString`${server.url}&discoveryInterval=1`;
  t.after(async () => {
    await client.dispose();
    await server[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  return client;
}

const event = (type: string, metadata?: Record<string, string>) =>
  jsonEvent({ type, data: { type }, ...(metadata === undefined ? {} : { metadata }) });

test('appends to several streams atomically, with properties as metadata', async (t) => {
  const client = await serve(t);
  const { position, responses } = await client.multiStreamAppend([
    {
      streamName: 'a-1',
      expectedState: 'no_stream',
      events: [event('one', { k: 'v' }), event('two')],
    },
    { streamName: 'b-1', expectedState: 'any', events: [event('three')] },
  ]);
  assert.deepEqual(responses, [
    { streamName: 'a-1', revision: 1n },
    { streamName: 'b-1', revision: 0n },
  ]);
  const [read] = await Array.fromAsync(client.readStream('a-1'));
  assert.deepEqual([read?.event?.type, read?.event?.metadata], ['one', { k: 'v' }]);
  const all = await Array.fromAsync(client.readAll());
  assert.equal(all.at(-1)?.event?.position?.commit, position);
});

test('a conflict in one stream prevents all appends', async (t) => {
  const client = await serve(t);
  await assert.rejects(
    client.multiStreamAppend([
      { streamName: 'a-1', expectedState: 'any', events: [event('one')] },
      { streamName: 'b-1', expectedState: 4n, events: [event('two')] },
    ]),
    (error) => {
      assert.ok(error instanceof WrongExpectedVersionError);
      assert.deepEqual(
        [error.streamName, error.expectedState, error.actualState],
        ['b-1', 4n, 'no_stream'],
      );
      return true;
    },
  );
  assert.deepEqual(await Array.fromAsync(client.readAll()), []);
});

test('tombstones, and too large records and appends, have typed details', async (t) => {
  const client = await serve(t);
  await client.tombstoneStream('gone-1');
  const to = (streamName: string, ...events: ReturnType<typeof event>[]) => ({
    streamName,
    expectedState: 'any' as const,
    events,
  });
  await assert.rejects(
    client.multiStreamAppend([to('gone-1', event('one'))]),
    (error) => error instanceof StreamTombstonedError && error.stream === 'gone-1',
  );
  const sized = (size: number) =>
    binaryEvent({ type: 'large', data: Buffer.alloc(size) }) as unknown as ReturnType<typeof event>;
  await assert.rejects(
    client.multiStreamAppend([to('a-1', sized(1_100_000))]),
    AppendRecordSizeExceededError,
  );
  await assert.rejects(
    client.multiStreamAppend([to('a-1', sized(600_000)), to('b-1', sized(600_000))]),
    TransactionMaxSizeExceededError,
  );
});

test('records of several streams keep their order, and violated checks are reported by index', async (t) => {
  const client = await serve(t);
  const record = (streamName: string, type: string) => ({ streamName, record: event(type) });
  const { responses } = await client.appendRecords([
    record('a-1', 'one'),
    record('b-1', 'two'),
    record('a-1', 'three'),
  ]);
  assert.deepEqual(
    new Map(responses.map(({ streamName, revision }) => [streamName, revision])),
    new Map([
      ['a-1', 1n],
      ['b-1', 0n],
    ]),
  );
  const types = (await Array.fromAsync(client.readAll())).map((read) => read.event?.type);
  assert.deepEqual(types, ['one', 'two', 'three']);
  const check = (streamName: string, expectedState: bigint | 'no_stream'): StreamStateCheck => ({
    type: STREAM_STATE,
    streamName,
    expectedState,
  });
  for (const [checks, index] of [
    [[check('a-1', 1n), check('b-1', 5n)], 1],
    [[check('unwritten-1', 3n)], 0],
  ] as const) {
    await assert.rejects(
      client.appendRecords([record('a-1', 'four'), record('b-1', 'five')], [...checks]),
      (error) =>
        error instanceof AppendConsistencyViolationError &&
        error.violations[0]?.checkIndex === index,
    );
  }
  await client.appendRecords(
    [record('a-1', 'four')],
    [check('a-1', 1n), check('none-1', 'no_stream')],
  );
});
