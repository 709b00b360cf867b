import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test, type TestContext } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import { eventually } from '../../testing/assertions.ts';
import { openMemory } from '../../engines/memory/index.ts';
import type { EventStore, SubscribeOptions } from '../../store/event-store.ts';
import { newEvents } from '../../testing/conformance/store/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { serveRaw } from '../../testing/support/kurrent/serve-raw.ts';
import { kurrentStoreOptions } from './index.ts';
import { kurrentLimits } from './kurrent-server.ts';
import { loadProtocol } from './protocol/load-protocol.ts';
import type { Fields } from './protocol/message.ts';
import {
  appendRequest,
  appendResponse,
  batchRequest,
  batchResponse,
  readRequest,
  readResponse,
} from './protocol/streams-messages.ts';
import { sessionRequest, sessionResponse } from './protocol/streams-v2-messages.ts';

const streams = 'event_store.client.streams';
const sessions = 'kurrentdb.protocol.v2.streams.StreamsService';
const messages: Readonly<Record<string, readonly [request: Fields, response: Fields]>> = {
  Append: [appendRequest, appendResponse],
  AppendSession: [sessionRequest, sessionResponse],
  BatchAppend: [batchRequest, batchResponse],
  Read: [readRequest, readResponse],
};
const id = '0e8c4ea8-1c2a-4d5e-9f00-000000000001';

interface Raw {
  readonly port: number;
  duplex(method: string): grpc.ClientDuplexStream<object, Record<string, unknown>>;
  serverStream(method: string, request: object): grpc.ClientReadableStream<Record<string, unknown>>;
}

async function serve(t: TestContext, options?: Parameters<typeof serveRaw>[1]): Promise<Raw> {
  const { client, protocol, port } = await serveRaw(t, options);
  const codecs = (method: string) => {
    const [request, response] = messages[method] ?? assert.fail(`no messages of ${method}`);
    const { encode } = protocol.codec(request);
    const { decode } = protocol.codec(response);
    return {
      encode: (value: object) => encode(value),
      decode: (bytes: Buffer) => decode(bytes) as Record<string, unknown>,
    };
  };
  return {
    port,
    duplex(method) {
      const { encode, decode } = codecs(method);
      const service = method === 'AppendSession' ? sessions : `${streams}.Streams`;
      return client.makeBidiStreamRequest(`/${service}/${method}`, encode, decode);
    },
    serverStream(method, request) {
      const { encode, decode } = codecs(method);
      return client.makeServerStreamRequest(
        `/${streams}.Streams/${method}`,
        encode,
        decode,
        request,
      );
    },
  };
}

const name = (stream: string) => ({ streamName: Buffer.from(stream) });
const proposed = (bytes: number) => ({
  id: { string: crypto.randomUUID() },
  metadata: { type: 'a', 'content-type': 'application/octet-stream' },
  data: Buffer.alloc(bytes),
});
const options = { streamIdentifier: name('a-1'), any: {} };
const sessionOf = (bytes: number) => ({
  stream: 'a-2',
  records: [{ recordId: crypto.randomUUID(), schema: { name: 'a' }, data: Buffer.alloc(bytes) }],
});

test('a batch without a correlation id fails only its call', async (t) => {
  const raw = await serve(t);
  const call = raw.duplex('BatchAppend');
  call.write({ options, proposedMessages: [proposed(1)], isFinal: true });
  const [error] = (await once(call, 'error')) as [grpc.ServiceError];
  assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  const second = raw.duplex('BatchAppend');
  second.write({
    correlationId: { string: id },
    options,
    proposedMessages: [proposed(1)],
    isFinal: true,
  });
  const [reply] = (await once(second, 'data')) as [Record<string, unknown>];
  assert.ok(reply['success'] !== undefined);
  second.end();
  second.resume();
  await once(second, 'end');
});

test('an endless batch is rejected once, as soon as it is too large', async (t) => {
  const raw = await serve(t, { limits: { appendBytesMax: 10_000 } });
  const call = raw.duplex('BatchAppend');
  const replies: Record<string, unknown>[] = [];
  call.on('data', (reply: Record<string, unknown>) => replies.push(reply));
  const chunk = { correlationId: { string: id }, proposedMessages: [proposed(4_000)] };
  call.write({ ...chunk, options });
  for (let count = 0; count < 20; count += 1) call.write(chunk);
  call.write({ ...chunk, isFinal: true });
  call.end();
  await once(call, 'end');
  assert.equal(replies.length, 1);
  const error = replies[0]?.['error'] as { details: { typeUrl: string } } | undefined;
  assert.match(error?.details.typeUrl ?? '', /MaximumAppendSizeExceeded$/);
});

test('the number of incomplete batches is limited', async (t) => {
  const raw = await serve(t, { limits: { openBatchesMax: 2 } });
  const call = raw.duplex('BatchAppend');
  for (let count = 0; count < 3; count += 1) {
    const correlationId = { string: crypto.randomUUID() };
    call.write({ correlationId, options, proposedMessages: [proposed(1)] });
  }
  const [reply] = (await once(call, 'data')) as [{ error?: { code: number } }];
  assert.equal(reply.error?.code, grpc.status.RESOURCE_EXHAUSTED);
  call.cancel();
  await once(call, 'error');
});

test('the size of incomplete batches is limited for all calls together, and free after a call', async (t) => {
  const raw = await serve(t, { limits: { openAppendBytesMax: 10_000 } });
  const open = (bytes: number) => {
    const call = raw.duplex('BatchAppend');
    const correlationId = { string: crypto.randomUUID() };
    call.write({ correlationId, options, proposedMessages: [proposed(bytes)] });
    return { call, correlationId };
  };
  const first = open(6_000);
  const second = open(6_000);
  const replies = [first, second].map(({ call }) => once(call, 'data'));
  const [rejected] = (await Promise.race(replies)) as [
    { error?: { code: number; message: string } },
  ];
  assert.equal(rejected.error?.code, grpc.status.RESOURCE_EXHAUSTED);
  // Not the time limit of incomplete batches, which has the same code.
  assert.match(rejected.error.message, /on this server/);
  for (const { call } of [first, second]) call.cancel();
  await Promise.all([first, second].map(({ call }) => once(call, 'error')));
  await eventually('the memory of the cancelled calls is free', async () => {
    const { call, correlationId } = open(9_000);
    call.write({ correlationId, proposedMessages: [], isFinal: true });
    const [reply] = (await once(call, 'data')) as [Record<string, unknown>];
    call.end();
    call.resume();
    await once(call, 'end');
    return reply['success'] !== undefined;
  });
});

test('the size of incomplete appends is limited for all calls and kinds together, and free after a call', async (t) => {
  const raw = await serve(t, { limits: { openAppendBytesMax: 100_000 } });
  /** Sends an event without the end of the requests. */
  const open = {
    Append(bytes: number) {
      const call = raw.duplex('Append');
      call.write({ options });
      call.write({ proposedMessage: proposed(bytes) });
      return call;
    },
    BatchAppend(bytes: number) {
      const call = raw.duplex('BatchAppend');
      const correlationId = { string: crypto.randomUUID() };
      call.write({ correlationId, options, proposedMessages: [proposed(bytes)] });
      return call;
    },
    AppendSession(bytes: number) {
      const call = raw.duplex('AppendSession');
      call.write(sessionOf(bytes));
      return call;
    },
  } as const;
  for (const kinds of [
    ['BatchAppend', 'Append'],
    ['Append', 'AppendSession'],
    ['AppendSession', 'BatchAppend'],
  ] as const) {
    const calls = kinds.map((kind) => open[kind](60_000));
    const { promise, resolve } = Promise.withResolvers<{ code: number; message: string }>();
    const ended = calls.map((call) => {
      call.on('error', resolve);
      // A rejected batch is a reply, and its call continues.
      call.on('data', ({ error }) => resolve(error as { code: number; message: string }));
      return once(call, 'error');
    });
    const rejected = await promise;
    assert.equal(
      rejected.code,
      grpc.status.RESOURCE_EXHAUSTED,
      `${kinds.join()}: ${rejected.message}`,
    );
    assert.match(rejected.message, /on this server/);
    // Small and complete appends are possible at the same time.
    const small = raw.duplex('Append');
    small.write({ options });
    small.write({ proposedMessage: proposed(10_000) });
    small.end();
    const [appended] = (await once(small, 'data')) as [object];
    assert.ok('success' in appended);
    for (const call of calls) call.cancel();
    await Promise.all(ended);
    await eventually('the memory of the cancelled calls is free', async () => {
      const call = raw.duplex('Append');
      call.write({ options });
      call.write({ proposedMessage: proposed(90_000) });
      call.end();
      const [reply] = (await Promise.race([once(call, 'data'), once(call, 'error')])) as [object];
      return 'success' in reply;
    });
  }
});

/** The server handles the calls of one connection in order, so it has seen all earlier messages. */
async function whenSeen(raw: Raw): Promise<void> {
  const call = raw.duplex('Append');
  call.write({ options });
  call.end();
  await once(call, 'data');
}

test('an open append that gets no message for too long is rejected', async (t) => {
  const clock = fakeClock();
  const raw = await serve(t, { clock });
  for (const kind of ['Append', 'AppendSession']) {
    const call = raw.duplex(kind);
    if (kind === 'Append') call.write({ options });
    else call.write(sessionOf(1));
    await whenSeen(raw);
    await clock.advance(kurrentLimits.openAppendIdleMsMax);
    // Without the limit, the call would now succeed.
    const ended = Promise.race([once(call, 'error'), once(call, 'data')]);
    call.end();
    const [rejected] = (await ended) as [Partial<grpc.ServiceError>];
    assert.equal(rejected.code, grpc.status.RESOURCE_EXHAUSTED, kind);
    assert.match(rejected.details ?? '', /no message of the call within 30000 ms/);
  }
});

test('an incomplete batch that gets no chunk for too long is rejected', async (t) => {
  const clock = fakeClock();
  const raw = await serve(t, { clock });
  const call = raw.duplex('BatchAppend');
  const correlationId = { string: id };
  call.write({ correlationId, options, proposedMessages: [proposed(1)] });
  await whenSeen(raw);
  await clock.advance(kurrentLimits.openAppendIdleMsMax);
  const replied = once(call, 'data');
  // Without the limit, the batch would now be appended.
  call.write({ correlationId, proposedMessages: [], isFinal: true });
  const [{ error }] = (await replied) as [{ error?: { code: number; message: string } }];
  assert.equal(error?.code, grpc.status.RESOURCE_EXHAUSTED);
  assert.match(error.message, /no chunk of the batch within 30000 ms/);
  call.end();
  call.resume();
  await once(call, 'end');
});

test('a batch after its deadline is rejected and not written', async (t) => {
  const raw = await serve(t);
  const call = raw.duplex('BatchAppend');
  const late = { ...options, deadlineAt: { seconds: 1, nanos: 0 } };
  const correlationId = { string: id };
  call.write({ correlationId, options: late, proposedMessages: [proposed(1)], isFinal: true });
  const [reply] = (await once(call, 'data')) as [{ error?: { code: number } }];
  assert.equal(reply.error?.code, grpc.status.DEADLINE_EXCEEDED);
  call.end();
  call.resume();
  await once(call, 'end');
});

test('a batch that the store does not complete in time is rejected', async (t) => {
  const store = openMemory(kurrentStoreOptions).store;
  const gate = Promise.withResolvers<void>();
  const raw = await serve(t, {
    store: {
      ...store,
      async append(...args) {
        await gate.promise;
        return store.append(...args);
      },
    },
  });
  const call = raw.duplex('BatchAppend');
  const soon = { ...options, deadlineIn: { seconds: 0, nanos: 1_000_000 } };
  call.write({
    correlationId: { string: id },
    options: soon,
    proposedMessages: [proposed(1)],
    isFinal: true,
  });
  const [reply] = (await once(call, 'data')) as [{ error?: { details: { typeUrl: string } } }];
  assert.match(reply.error?.details.typeUrl ?? '', /Timeout$/);
  gate.resolve();
  call.end();
  call.resume();
  await once(call, 'end');
});

test('a client that appends faster than the store writes is slowed down', async (t) => {
  for (const limits of [{ appendsInFlightMax: 4 }, { appendBytesInFlightMax: 4_000 }]) {
    const store = openMemory(kurrentStoreOptions).store;
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    const raw = await serve(t, {
      limits,
      store: {
        ...store,
        async append(...args) {
          begun += 1;
          await gate.promise;
          return store.append(...args);
        },
      },
    });
    const call = raw.duplex('BatchAppend');
    let replyCount = 0;
    const all = new Promise<void>((resolve) => {
      call.on('data', () => {
        replyCount += 1;
        if (replyCount === 100) resolve();
      });
    });
    for (let count = 0; count < 100; count += 1) {
      const correlationId = { string: crypto.randomUUID() };
      call.write({ correlationId, options, proposedMessages: [proposed(1_000)], isFinal: true });
    }
    for (let turn = 0; turn < 500; turn += 1) await new Promise(setImmediate);
    assert.ok(begun >= 1 && begun <= 4, `${begun} appends were begun`);
    gate.resolve();
    await all;
    call.end();
    await once(call, 'end');
  }
});

test('the server stops reading for a client that never reads, and frees its resources on disconnect', async (t) => {
  const store = openMemory(kurrentStoreOptions).store;
  const payload = { text: 'x'.repeat(10_000) };
  for (let round = 0; round < 20; round += 1) {
    await store.append('a-1', newEvents(100, { payload }));
  }
  let pages = 0;
  const left = Promise.withResolvers<void>();
  const watched: EventStore = {
    ...store,
    async *subscribe(subscribeOptions: SubscribeOptions = {}) {
      try {
        for await (const item of store.subscribe({ ...subscribeOptions, pageSize: 10 })) {
          pages += 1;
          yield item;
        }
      } finally {
        left.resolve();
      }
    },
  };
  const { port } = await serve(t, { store: watched });
  const protocol = await loadProtocol();
  const request = protocol.codec(readRequest).encode({
    options: { all: { start: {} }, subscription: {}, readDirection: 0, resolveLinks: false },
  });
  const session = connect(`http://127.0.0.1:${port}`);
  const call = session.request({
    ':method': 'POST',
    ':path': `/${streams}.Streams/Read`,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const header = Buffer.alloc(5);
  header.writeUInt32BE(request.length, 1);
  call.end(Buffer.concat([header, request]));
  await once(call, 'response');
  // The server sends what fits into the flow-control windows, and no more.
  let seen = -1;
  while (seen !== pages) {
    seen = pages;
    for (let turn = 0; turn < 1_000; turn += 1) await new Promise(setImmediate);
  }
  assert.ok(pages < 50, `${pages} pages were read without a reader`);
  session.destroy();
  await left.promise;
});

test('subscriptions beyond the maximum are rejected', async (t) => {
  const raw = await serve(t, { limits: { subscriptionsMax: 1 } });
  const request = { options: { all: { start: {} }, subscription: {}, noFilter: {} } };
  const first = raw.serverStream('Read', request);
  first.on('error', () => undefined);
  await once(first, 'data');
  const second = raw.serverStream('Read', request);
  second.resume();
  const [error] = (await once(second, 'error')) as [grpc.ServiceError];
  assert.equal(error.code, grpc.status.RESOURCE_EXHAUSTED);
  first.cancel();
});

test('huge filters and patterns without linear time are rejected', async (t) => {
  const raw = await serve(t);
  const filters = [
    { eventType: { regex: 'a'.repeat(2_000) } },
    { eventType: { regex: '(a+)+\\1' } },
    { eventType: { prefix: Array.from({ length: 2_000 }, () => 'x') } },
    { streamIdentifier: { prefix: ['x'.repeat(5_000)] } },
    {},
  ];
  for (const filter of filters) {
    for (const kind of [{ count: 1 }, { subscription: {} }]) {
      const call = raw.serverStream('Read', { options: { all: { start: {} }, filter, ...kind } });
      call.resume();
      const [error] = (await once(call, 'error')) as [grpc.ServiceError];
      assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
    }
  }
});

test('an empty request is rejected and does not crash the server', async (t) => {
  const raw = await serve(t);
  for (const request of [
    {},
    { options: {} },
    { options: { count: 1 } },
    { options: { stream: {}, count: 1 } },
    { options: { stream: { streamIdentifier: { streamName: Buffer.from([255]) } }, count: 1 } },
  ]) {
    const call = raw.serverStream('Read', request);
    call.resume();
    const [error] = (await once(call, 'error')) as [grpc.ServiceError];
    assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
  }
});
