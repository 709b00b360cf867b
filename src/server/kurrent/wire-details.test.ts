// What only other languages' clients see: fields that the official npm clients neither send nor show.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import type { EventStore } from '../../store/event-store.ts';
import { newEvents } from '../../testing/conformance/store/fixture.ts';
import { serveRaw } from '../../testing/support/kurrent/serve-raw.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import type { Fields, Wire } from './protocol/message.ts';
import {
  groupReadRequest,
  groupReadResponse,
  writeRequest,
} from './protocol/persistent-messages.ts';
import { nothing } from './protocol/shared-messages.ts';
import { readRequest, readResponse, type WireReadRequest } from './protocol/streams-messages.ts';
import { toCount } from './protocol/wire-number.ts';
import { supportedMethodsResponse } from './server-info.ts';

interface Raw {
  readonly store: EventStore;
  readonly unary: <Response extends Fields>(
    path: string,
    messages: readonly [request: Fields, response: Response],
    request: object,
  ) => Promise<Wire<Response>>;
  /** All responses in short form: `first=2`, `e2`, `last=5`, `not found`. */
  readonly read: (options: Partial<NonNullable<WireReadRequest['options']>>) => Promise<string[]>;
  readonly client: grpc.Client;
  readonly protocol: Protocol;
}

async function serve(t: TestContext): Promise<Raw> {
  const { store, client, protocol } = await serveRaw(t);
  return {
    store,
    client,
    protocol,
    unary: (path, [request, response], value) =>
      new Promise((resolve, reject) => {
        const { encode } = protocol.codec(request);
        const { decode } = protocol.codec(response);
        client.makeUnaryRequest(
          `/event_store.client.${path}`,
          (each: object) => encode(each as never),
          decode,
          value,
          (error, answer) => (error === null ? resolve(answer as never) : reject(error)),
        );
      }),
    async read(options) {
      const call = client.makeServerStreamRequest(
        '/event_store.client.streams.Streams/Read',
        (each: object) => protocol.codec(readRequest).encode(each as WireReadRequest),
        (bytes) => protocol.codec(readResponse).decode(bytes),
        { options: { readDirection: 0, resolveLinks: false, ...options } },
      );
      const seen: string[] = [];
      for await (const each of call as AsyncIterable<Wire<typeof readResponse>>) {
        if (each.event?.event !== undefined) {
          seen.push(`e${toCount(each.event.event.streamRevision)}`);
        } else if (each.firstStreamPosition !== undefined) {
          seen.push(`first=${toCount(each.firstStreamPosition)}`);
        } else if (each.lastStreamPosition !== undefined) {
          seen.push(`last=${toCount(each.lastStreamPosition)}`);
        } else {
          seen.push(each.streamNotFound === undefined ? '?' : 'not found');
        }
      }
      return seen;
    },
  };
}

const from = (revision: number) => ({
  streamIdentifier: { streamName: Buffer.from('orders-1') },
  revision,
});
const controlOption = { compatibility: 1 };

test('a read has the first and last position only for clients that ask for them', async (t) => {
  const { store, read } = await serve(t);
  await store.append('orders-1', newEvents(6));
  assert.deepEqual(await read({ stream: from(4), count: 10 }), ['e4', 'e5']);
  assert.deepEqual(await read({ stream: from(2), count: 2, controlOption }), [
    'e2',
    'e3',
    'last=5',
  ]);
  assert.deepEqual(await read({ stream: from(4), count: 10, controlOption }), [
    'e4',
    'e5',
    'last=5',
  ]);
  const backwards = { readDirection: 1, controlOption } as const;
  assert.deepEqual(await read({ stream: from(1), count: 10, ...backwards }), [
    'e1',
    'e0',
    'last=5',
  ]);
  assert.deepEqual(await read({ stream: from(50), count: 10, controlOption }), [
    'first=6',
    'last=5',
  ]);
  assert.deepEqual(await read({ stream: from(6), count: 10, controlOption }), ['last=5']);
  await store.setStreamMetadata('orders-1', { truncateBefore: 2 });
  assert.deepEqual(await read({ stream: from(0), count: 2, controlOption }), [
    'first=2',
    'e2',
    'e3',
    'last=5',
  ]);
  // The first page of KurrentDB contains visible events.
  assert.deepEqual(await read({ stream: from(0), count: 10, controlOption }), [
    'e2',
    'e3',
    'e4',
    'e5',
    'last=5',
  ]);
  const missing = { streamIdentifier: { streamName: Buffer.from('none') }, start: {} };
  assert.deepEqual(await read({ stream: missing, count: 2, controlOption }), ['not found']);
});

test('a read of 0 events is rejected', async (t) => {
  const { store, read } = await serve(t);
  await store.append('orders-1', newEvents(1));
  await assert.rejects(read({ stream: from(0), count: 0 }), /count of at least 1/);
});

test('a filter without prefixes matches nothing', async (t) => {
  const { store, read } = await serve(t);
  await store.append('orders-1', newEvents(1));
  const filter = {
    eventType: { regex: '', prefix: [] },
    max: 32,
    checkpointIntervalMultiplier: 1,
  };
  assert.deepEqual(await read({ all: { start: {} }, count: 10, filter }), []);
});

test('the names of services and methods are in lower case', async (t) => {
  const { unary } = await serve(t);
  const { methods } = await unary(
    'server_features.ServerFeatures/GetSupportedMethods',
    [nothing, supportedMethodsResponse],
    {},
  );
  const names = methods.map(({ serviceName, methodName }) => `${serviceName}/${methodName}`);
  assert.ok(names.includes('event_store.client.streams.streams/batchappend'));
  assert.deepEqual(
    names,
    names.map((each) => each.toLowerCase()),
  );
});

const settings = {
  messageTimeoutMs: 1_000,
  checkpointAfterMs: 1_000,
  maxRetryCount: 1,
  minCheckpointCount: 1,
  maxCheckpointCount: 10,
  liveBufferSize: 100,
  readBatchSize: 10,
  historyBufferSize: 100,
  consumerStrategy: 'RoundRobin',
};
const create = 'persistent_subscriptions.PersistentSubscriptions/Create';
const group = { streamIdentifier: { streamName: Buffer.from('orders-1') }, groupName: 'g' };

test('the confirmation of a persistent subscription names stream and group', async (t) => {
  const { unary, client, protocol } = await serve(t);
  await unary(create, [writeRequest, nothing], { options: { ...group, settings } });
  const call = client.makeBidiStreamRequest(
    '/event_store.client.persistent_subscriptions.PersistentSubscriptions/Read',
    (each: object) => protocol.codec(groupReadRequest).encode(each as never),
    (bytes) => protocol.codec(groupReadResponse).decode(bytes),
  );
  call.write({ options: { ...group, bufferSize: 10 } });
  for await (const each of call as AsyncIterable<Wire<typeof groupReadResponse>>) {
    assert.equal(each.subscriptionConfirmation?.subscriptionId, 'orders-1::g');
    break;
  }
});

test('invalid settings of a group fail with the names of stream and group', async (t) => {
  const { unary } = await serve(t);
  const bad = { ...settings, historyBufferSize: 5 };
  await assert.rejects(
    unary(create, [writeRequest, nothing], { options: { ...group, settings: bad } }),
    (error: grpc.ServiceError) => {
      const trailers = error.metadata.getMap();
      assert.deepEqual(
        [error.code, trailers['exception'], trailers['stream-name'], trailers['group-name']],
        [grpc.status.INTERNAL, 'persistent-subscription-failed', 'orders-1', 'g'],
      );
      return true;
    },
  );
});
