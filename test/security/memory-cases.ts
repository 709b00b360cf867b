// Callers with small permissions must not fill the memory of a server with a heap of 512 MB, on several engines.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import {
  binaryEvent,
  KurrentDBClient,
  persistentSubscriptionToStreamSettingsFromDefaults,
  START,
} from '@kurrent/kurrentdb-client';
import { WebSocket } from 'ws';
import type { EngineUrls } from '../../src/platform/index.ts';
import { loadProtocol } from '../../src/server/kurrent/protocol/load-protocol.ts';
import {
  appendRequest,
  batchRequest,
  batchResponse,
} from '../../src/server/kurrent/protocol/streams-messages.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { soakMinutes } from '../store/rig.ts';
import type {
  BusOrder,
  BusUse,
  ListOrder,
  ListsFilled,
  MemoryInput,
  MemoryServer,
  MemoryUse,
} from './memory-main.ts';

const isLong = soakMinutes > 0;
/** In the long form, each step sends more than the heap has, or than the process may have for what is outside of the heap. */
const counts = {
  /** Events of 1 MB; in memory 2 MB, because of one character. */
  appends: isLong ? 320 : 30,
  sockets: 300,
  calls: isLong ? 40 : 2,
  batchesPerCall: 18,
  openAppends: isLong ? 400 : 140,
  groups: isLong ? 40 : 8,
  groupEvents: isLong ? 26 : 10,
  pages: isLong ? 60 : 8,
  /** Parallel requests of one item. */
  singles: isLong ? 300 : 40,
  /** Dead letters, documents, sagas and messages of 0.9 MB, and jobs of 0.25 MB; in memory twice that. */
  listed: isLong ? 300 : 20,
  /** Messages of 0.9 MB. */
  messages: isLong ? 800 : 24,
};
const mebibyte = 1_048_576;
const heapBytes = 512 * mebibyte;
/** Buffers of sockets and of SQLite, the heap of the writer thread, and the code: 460 to 540 MiB in the long form. */
const outsideBytesMax = 640 * mebibyte;
/** 1 MiB, and the last items. On Redis and NATS, a list of jobs has no payloads. */
const pageCharsMax = 8 * mebibyte;

const large = { text: `${'x'.repeat(1_000_000)}\u0394` };
const stream = 'shop.order.v1-core-o1';

export const memoryTitle =
  'unread responses, open appends and batches, groups, large pages and messages stay within the memory of a small server';

export const listMemoryTitle =
  'parallel lists of large dead letters, documents, jobs, sagas, messages and failures, single ones, and claims of jobs, stay within the memory of a small server';

export async function checkListMemory(engines: EngineUrls): Promise<void> {
  await using child = startServer(engines);
  const server = await serverOf(child);
  const { single } = await readLists(server, child);
  await assertServing(server, child, 'large lists');
  for (const path of single) {
    await readSingle(server, path);
    await assertServing(server, child, path);
  }
  await claimJobs(server);
  await assertServing(server, child, 'large jobs');
}

const startServer = (engines: EngineUrls): Child =>
  startChild(new URL('./memory-main.ts', import.meta.url), {
    input: { engines } satisfies MemoryInput,
    nodeFlags: [`--max-old-space-size=${heapBytes / mebibyte}`],
  });

const serverOf = (child: Child): Promise<MemoryServer> =>
  child.message((message): message is MemoryServer => (message as MemoryServer).kind === 'serving');

export async function checkMemory(engines: EngineUrls): Promise<void> {
  await using child = startServer(engines);
  const server = await serverOf(child);
  await using attack = new AsyncDisposableStack();

  await appendLarge(server);
  await assertServing(server, child, 'appends');

  attack.adopt(unreadEvents(server), (socket) => void socket.destroy());
  for (const socket of await unreadSockets(server))
    attack.adopt(socket, (each) => each.terminate());
  await assertServing(server, child, 'unread clients');

  attack.use(await openBatches(server));
  await assertServing(server, child, 'open batches');

  attack.use(await unacknowledged(server));
  await assertServing(server, child, 'consumers of groups that do not acknowledge');

  attack.use(await openAppends(server));
  await assertServing(server, child, 'open appends');

  const pages = await Promise.all(Array.from({ length: counts.pages }, () => readPage(server)));
  assert.ok(pages.every((items) => items > 0));
  await assertServing(server, child, 'large pages');

  const { fetched, read } = await useBus(child);
  assert.ok(fetched < 18, `${fetched} messages in one fetch`);
  assert.equal(read, counts.messages);
  await assertServing(server, child, 'large messages');
}

/** Lists in parallel, each with the largest limit. */
async function readLists(server: MemoryServer, child: Child): Promise<ListsFilled> {
  const { url, tokens } = server;
  child.send({ listed: counts.listed } satisfies ListOrder);
  const filled = await child.message(
    (message): message is ListsFilled => (message as ListsFilled).kind === 'lists',
  );
  const { paths } = filled;
  assert.ok(paths.length >= 2);
  for (const path of [...paths, '/admin/failures']) {
    // Only callers of all tenants see the dead letters of the bus.
    const token = path === '/admin/failures' ? tokens.all : tokens.other;
    const headers = { authorization: `Bearer ${token}` };
    const read = async (): Promise<void> => {
      const limit = path === '/admin/failures' ? '' : '?limit=1000';
      const response = await fetch(`${url}${path}${limit}`, { headers });
      const text = await response.text();
      assert.equal(response.status, 200, `${path}: ${text.slice(0, 500)}`);
      const { items } = JSON.parse(text) as { readonly items: readonly unknown[] };
      assert.ok(items.length > 0, `${path}: no items`);
      assert.ok(text.length < pageCharsMax, `${path}: ${text.length} characters`);
    };
    await Promise.all(Array.from({ length: counts.pages }, read));
    await assertServing(server, child, path);
  }
  return filled;
}

/** The same large resource many times at once. */
async function readSingle({ url, tokens }: MemoryServer, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${tokens.other}` };
  const read = async (): Promise<void> => {
    const response = await fetch(`${url}${path}`, { headers });
    const { byteLength } = await response.arrayBuffer();
    assert.equal(response.status, 200, path);
    assert.ok(byteLength > 250_000, `${path}: ${byteLength} bytes`);
  };
  await Promise.all(Array.from({ length: counts.singles }, read));
}

/** Claims all jobs with parallel requests for as many as possible. */
async function claimJobs({ url, tokens }: MemoryServer): Promise<void> {
  let claimed = 0;
  const claim = async (_: unknown, at: number): Promise<void> => {
    for (;;) {
      const response = await fetch(`${url}/api/v1/worker/claim`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokens.work}`, 'content-type': 'application/json' },
        body: JSON.stringify({ worker: `w-${at}`, types: { 'report-gen': 1_000 }, waitMs: 10 }),
      });
      const { items } = (await response.json()) as { readonly items: readonly unknown[] };
      assert.ok(items.length <= 8, `${items.length} jobs of 0.25 MB in a response`);
      if (items.length === 0) return;
      claimed += items.length;
    }
  };
  await Promise.all(Array.from({ length: counts.pages }, claim));
  assert.equal(claimed, counts.listed);
}

async function useBus(child: Child): Promise<BusUse> {
  child.send({ messages: counts.messages } satisfies BusOrder);
  return child.message((message): message is BusUse => (message as BusUse).kind === 'bus');
}

async function appendLarge({ url, tokens }: MemoryServer): Promise<void> {
  const body = JSON.stringify({ events: [{ type: 'order.placed.v1', payload: large }] });
  const append = async (): Promise<void> => {
    const response = await fetch(`${url}/api/v1/streams/${stream}/events`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${tokens.append}`, 'content-type': 'application/json' },
    });
    assert.equal(response.status, 201, await response.text());
  };
  for (let at = 0; at < counts.appends; at += 5) {
    await Promise.all(Array.from({ length: 5 }, append));
  }
}

function unreadEvents({ url, tokens }: MemoryServer) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.pause();
  socket.on('error', () => undefined);
  const credentials = `authorization: Bearer ${tokens.read}`;
  socket.write(
    `GET /api/v1/events/subscribe HTTP/1.1\r\nhost: localhost\r\n${credentials}\r\n\r\n`,
  );
  return socket;
}

async function unreadSockets({ url, tokens }: MemoryServer): Promise<readonly WebSocket[]> {
  const headers = { authorization: `Bearer ${tokens.read}` };
  const sockets = Array.from(
    { length: counts.sockets },
    () => new WebSocket(`${url.replace('http', 'ws')}/ws`, { headers }),
  );
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.all(sockets.map((socket) => once(socket, 'open')));
  for (const socket of sockets) {
    socket.send(JSON.stringify({ type: 'subscribe', id: 's' }));
    socket.pause();
  }
  return sockets;
}

/** Each call sends batches of almost 1 MB without their last chunk. */
async function openBatches({ kurrentPort }: MemoryServer): Promise<Disposable> {
  const protocol = await loadProtocol();
  const { encode } = protocol.codec(batchRequest);
  const { decode } = protocol.codec(batchResponse);
  const client = new grpc.Client(`127.0.0.1:${kurrentPort}`, grpc.credentials.createInsecure());
  const method = '/event_store.client.streams.Streams/BatchAppend';
  const rejected: number[] = [];
  const calls = Array.from({ length: counts.calls }, () => {
    const call = client.makeBidiStreamRequest(
      method,
      (value: Parameters<typeof encode>[0]) => encode(value),
      (bytes: Buffer) => decode(bytes) as { error?: { code: number } },
    );
    call.on('error', () => undefined);
    call.on('data', ({ error }) => rejected.push(error?.code ?? 0));
    return call;
  });
  for (let count = 0; count < counts.batchesPerCall; count += 1) {
    for (const call of calls) {
      const isWritten = call.write({
        correlationId: { string: crypto.randomUUID() },
        options: { streamIdentifier: { streamName: Buffer.from('a-1') }, any: {} },
        proposedMessages: [
          {
            id: { string: crypto.randomUUID() },
            metadata: { type: 'a', 'content-type': 'application/octet-stream' },
            customMetadata: Buffer.alloc(0),
            data: Buffer.alloc(1_000_000),
          },
        ],
        isFinal: false,
      });
      if (!isWritten) await once(call, 'drain');
    }
  }
  // The last batch of each call is answered after all batches before it.
  for (const call of calls) {
    const correlationId = { string: crypto.randomUUID() };
    call.write({ correlationId, proposedMessages: [], isFinal: false });
    await once(call, 'data');
  }
  assert.ok(rejected.includes(grpc.status.RESOURCE_EXHAUSTED), 'no batch was rejected');
  return {
    [Symbol.dispose]() {
      for (const call of calls) call.cancel();
      client.close();
    },
  };
}

/** Each call sends an event of almost 1 MB without the end of its requests. */
async function openAppends({ kurrentPort }: MemoryServer): Promise<Disposable> {
  const protocol = await loadProtocol();
  const { encode } = protocol.codec(appendRequest);
  const client = new grpc.Client(`127.0.0.1:${kurrentPort}`, grpc.credentials.createInsecure());
  const { promise: rejected, resolve } = Promise.withResolvers<string>();
  const calls: grpc.ClientWritableStream<object>[] = [];
  for (let count = 0; count < counts.openAppends; count += 1) {
    const call = client.makeClientStreamRequest(
      '/event_store.client.streams.Streams/Append',
      (value: Parameters<typeof encode>[0]) => encode(value),
      (bytes: Buffer) => bytes,
      (error) => resolve(error?.details ?? 'accepted'),
    );
    call.on('error', () => undefined);
    calls.push(call);
    call.write({ options: { streamIdentifier: { streamName: Buffer.from('a-1') }, any: {} } });
    const isWritten = call.write({
      proposedMessage: {
        id: { string: crypto.randomUUID() },
        metadata: { type: 'a', 'content-type': 'application/octet-stream' },
        customMetadata: Buffer.alloc(0),
        data: Buffer.alloc(1_000_000),
      },
    });
    if (!isWritten) await Promise.race([once(call, 'drain'), rejected]);
  }
  assert.match(await rejected, /too many incomplete appends/);
  return {
    [Symbol.dispose]() {
      for (const call of calls) call.cancel();
      client.close();
    },
  };
}

/** Consumers of persistent subscriptions that get large events and acknowledge none. */
async function unacknowledged({ kurrentPort }: MemoryServer): Promise<AsyncDisposable> {
  // On a busy machine, the limits of time would end the calls before those of memory.
  const parameters = 'tls=false&defaultDeadline=600000';
  const client = KurrentDBClient.connectionString`kurrentdb://127.0.0.1:${kurrentPort}?${parameters}`;
  const source = 'grouped-1';
  for (let count = 0; count < counts.groupEvents; count += 1) {
    const data = Buffer.alloc(1_000_000);
    await client.appendToStream(source, binaryEvent({ type: 'a', data }));
  }
  const groups = Array.from({ length: counts.groups }, (_, at) => `readers-${at}`);
  const settings = persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: START });
  for (const group of groups) {
    await client.createPersistentSubscriptionToStream(source, group, settings);
    const options = { bufferSize: 1_000 };
    const reading = client.subscribeToPersistentSubscriptionToStream(source, group, options);
    reading.on('error', () => undefined);
    await once(reading, 'data');
    reading.pause();
  }
  // 64 MiB of all groups, with 2.7 MB for each message, and one page of each group.
  const most = 26 + 2 * groups.length;
  for (let count = 0; count < 10; count += 1) {
    const infos = await Promise.all(
      groups.map((group) => client.getPersistentSubscriptionToStreamInfo(source, group)),
    );
    const held = infos.reduce((sum, { stats }) => sum + stats.totalInFlightMessages, 0);
    assert.ok(held <= most, `the groups hold ${held} messages`);
  }
  return { [Symbol.asyncDispose]: () => client.dispose() };
}

/** Returns the number of events in the page. */
async function readPage({ url, tokens }: MemoryServer): Promise<number> {
  const response = await fetch(`${url}/api/v1/streams/${stream}/events?limit=1000`, {
    // The callers that do not read delay only themselves.
    headers: { authorization: `Bearer ${tokens.other}` },
  });
  const page = (await response.json()) as { items: unknown[] };
  return page.items.length;
}

async function assertServing({ url }: MemoryServer, child: Child, after: string): Promise<void> {
  assert.equal((await fetch(`${url}/health/live`)).status, 200, after);
  const seen = child.messages.length;
  child.send('memory');
  const { outsideMax, heapMax } = await child.message(
    (message): message is MemoryUse =>
      (message as MemoryUse).kind === 'memory' && child.messages.indexOf(message) >= seen,
  );
  const used = `${Math.round(heapMax / mebibyte)} MiB of heap, ${Math.round(outsideMax / mebibyte)} MiB outside of it`;
  assert.ok(heapMax < heapBytes, `${after}: ${used}`);
  assert.ok(outsideMax < outsideBytesMax, `${after}: ${used}`);
}
