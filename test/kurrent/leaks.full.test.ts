// Hundreds of connections that break during a read; a thousand in the soak.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type ClientHttp2Session } from 'node:http2';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openMemory } from '../../src/engines/memory/index.ts';
import type { EventStore, SubscribeOptions } from '../../src/store/event-store.ts';
import { newEvents } from '../../src/testing/conformance/store/fixture.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { loadProtocol } from '../../src/server/kurrent/protocol/load-protocol.ts';
import type { Fields } from '../../src/server/kurrent/protocol/message.ts';
import { groupReadRequest } from '../../src/server/kurrent/protocol/persistent-messages.ts';
import { batchRequest, readRequest } from '../../src/server/kurrent/protocol/streams-messages.ts';
import { soakMinutes, until } from '../store/rig.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const read = 'event_store.client.streams.Streams/Read';
const write = 'event_store.client.streams.Streams/BatchAppend';
const group = 'event_store.client.persistent_subscriptions.PersistentSubscriptions/Read';

const connections = soakMinutes > 0 ? 800 : 160;
/** The maximum memory growth per connection. */
const bytesMax = 10_000;

test('clients that disconnect while reading leave neither memory nor handles', async () => {
  await using db = openMemory(kurrentStoreOptions);
  const { store, subscriptions } = db;
  await store.append('a-1', newEvents(500, { payload: { text: 'x'.repeat(1_000) } }));
  let following = 0;
  const counted: EventStore = {
    ...store,
    async *subscribe(options: SubscribeOptions = {}) {
      following += 1;
      try {
        yield* store.subscribe(options);
      } finally {
        following -= 1;
      }
    },
  };
  const server = await startKurrentServer(counted, { leases: subscriptions.leases, port: 0 });
  const protocol = await loadProtocol();
  const message = (fields: Fields, value: object): Buffer => {
    const bytes = protocol.codec(fields).encode(value);
    const header = Buffer.alloc(5);
    header.writeUInt32BE(bytes.length, 1);
    return Buffer.concat([header, bytes]);
  };
  const all = { all: { start: {} } };
  const subscribe = message(readRequest, { options: { ...all, subscription: {} } });
  const bounded = message(readRequest, { options: { ...all, count: 500 } });
  const batch = message(batchRequest, {
    correlationId: { string: '0e8c4ea8-1c2a-4d5e-9f00-000000000001' },
    options: { streamIdentifier: { streamName: Buffer.from('b-1') }, any: {} },
  });
  const consume = message(groupReadRequest, {
    options: { all: {}, groupName: 'missing', bufferSize: 10 },
  });

  const call = (session: ClientHttp2Session, path: string, bytes: Buffer) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${path}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    stream.write(bytes);
    return stream;
  };
  const vanish = async (): Promise<void> => {
    const session = connect(`http://127.0.0.1:${server.port}`);
    session.on('error', () => undefined);
    const following1 = call(session, read, subscribe);
    following1.end();
    call(session, read, bounded).end();
    call(session, write, batch);
    call(session, group, consume);
    await once(following1, 'data');
    session.destroy();
    await once(session, 'close');
  };
  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round += 5) {
      await Promise.all(Array.from({ length: 5 }, vanish));
    }
    await until('no subscription is left', () => following === 0);
  };
  const heapBytes = (): number => {
    collectGarbage();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const handles = (): number => process.getActiveResourcesInfo().length;

  // Compiled code and caches remain.
  await rounds(connections / 4);
  const before = { bytes: heapBytes(), handles: handles() };
  await rounds(connections);
  await until('the handles are closed', () => handles() <= before.handles + 5);
  const grown = heapBytes() - before.bytes;
  assert.ok(grown < connections * bytesMax, `${grown} bytes more after ${connections} connections`);
  await server[Symbol.asyncDispose]();
});
