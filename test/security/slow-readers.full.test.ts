// Clients that request much and read nothing: bounded pages, no page ahead of the client, and a typed disconnect.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { defineModule } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import type { RecordedEvent } from '../../src/store/recorded-event.ts';
import { newEvent, newStream } from '../../src/testing/conformance/store/fixture.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { httpLimits } from '../../src/server/http/http-server.ts';
import { wsLimits } from '../../src/server/http/ws-connection.ts';
import { openApi, type Api } from '../../src/testing/support/server/api-rig.ts';

const tenant = 'core';

async function appendLarge(api: Api, count: number, characters: number): Promise<string> {
  const stream = newStream('shop.order.v1', tenant);
  for (let at = 0; at < count; at += 1) {
    const event = newEvent({
      type: 'order.placed.v1',
      aggregate: { bc: 'shop', type: 'order', id: stream.split('-')[2] ?? '' },
      payload: { at, text: 'x'.repeat(characters) },
    });
    await api.platform.engines.store.append(stream, [event]);
  }
  return stream;
}

function recordWarnings() {
  const warnings: string[] = [];
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_fields: object, message: string) => void warnings.push(message),
    error: () => undefined,
  };
  return { warnings, observer: { log } };
}

/** Sends a request and reads nothing of the response. */
function requestUnread(api: Api, path: string, token: string): Socket {
  const socket = connect(api.server.port, '127.0.0.1');
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`);
  socket.on('error', () => undefined);
  return socket;
}

test('a page of large events ends early, and its cursor continues without a gap', async () => {
  await using api = await openApi();
  const stream = await appendLarge(api, 12, 400_000);
  const token = await api.token('read', tenant);
  for (const path of [
    `/api/v1/streams/${stream}/events`,
    '/api/v1/events?category=shop.order.v1',
  ]) {
    for (const direction of ['forwards', 'backwards']) {
      const revisions: number[] = [];
      let pages = 0;
      let cursor: string | undefined;
      do {
        const query = new URLSearchParams({ limit: '1000', direction, ...(cursor && { cursor }) });
        const response = await api.ask(
          `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`,
          token,
        );
        const text = await response.text();
        assert.ok(text.length < 2_000_000, `a page has ${text.length} characters`);
        const page = JSON.parse(text) as { items: RecordedEvent[]; cursor?: string };
        revisions.push(...page.items.map(({ revision }) => revision));
        cursor = page.cursor;
        pages += 1;
      } while (cursor !== undefined);
      const all = Array.from({ length: 12 }, (_, revision) => revision);
      assert.deepEqual(revisions, direction === 'forwards' ? all : all.toReversed());
      assert.ok(pages >= 4, `${pages} pages`);
    }
  }
});

for (const [chars, expected] of [
  [100_000, [11, 11, 11, 7]],
  [50_000, [32, 8]],
] as const) {
  test(`a list of documents of ${chars} characters ends early, and its cursor continues without a gap`, async () => {
    const orders = projection({
      name: 'sub:shop:orders:v1',
      readModel: readModel<{ readonly text: string }>({
        bc: 'shop',
        aggregate: 'order',
        version: 1,
      }),
      on: {
        'order.placed.v1': (_before, { payload }: ProjectedEvent<{ readonly text: string }>) => ({
          text: payload.text,
        }),
      },
    });
    const shop = defineModule({ name: 'shop', projections: [orders] });
    await using api = await openApi({}, { store: 'memory:' }, [shop]);
    for (let count = 0; count < 40; count += 1) await appendLarge(api, 1, chars);
    await api.platform.waitFor(orders, await api.platform.engines.store.head());
    const token = await api.token('read', tenant);
    const sizes: number[] = [];
    const ids = new Set<string>();
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({ limit: '1000', ...(cursor && { cursor }) });
      const response = await api.ask(`/api/v1/documents/shop/order?${query.toString()}`, token);
      const page = (await response.json()) as { items: { id: string }[]; cursor?: string };
      for (const { id } of page.items) ids.add(id);
      sizes.push(page.items.length);
      cursor = page.cursor;
    } while (cursor !== undefined);
    assert.deepEqual([sizes, ids.size], [expected, 40]);
  });
}

test('a list of large messages of the outbox ends early, and its cursor continues without a gap', async () => {
  await using api = await openApi();
  const { outbox } = api.platform.engines;
  assert.ok(outbox !== undefined);
  const text = 'x'.repeat(400_000);
  const sent = await outbox.enqueueMany(
    Array.from({ length: 7 }, (_, at) => ({
      sourceStreamId: newStream('shop.order.v1', tenant),
      sourceEventId: `event-${at}`,
      integrationType: 'webhook:partner',
      eventType: 'order.placed.v1',
      payload: { text },
      tenantId: tenant,
      dueAt: new Date('2100-01-01'),
    })),
  );
  const token = await api.token('read', tenant);
  const sizes: number[] = [];
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const query = new URLSearchParams({ limit: '1000', ...(cursor && { cursor }) });
    const response = await api.ask(`/admin/outbox?${query.toString()}`, token);
    const page = (await response.json()) as { items: { id: string }[]; cursor?: string };
    ids.push(...page.items.map(({ id }) => id));
    sizes.push(page.items.length);
    cursor = page.cursor;
  } while (cursor !== undefined);
  const newestFirst = sent.map(({ id }) => id).toReversed();
  assert.deepEqual([sizes, ids], [[3, 3, 1], newestFirst]);
});

test('a list of large jobs ends early, and its cursor continues without a gap', async () => {
  await using api = await openApi();
  const tasks = await api.platform.tasks();
  const payload = { text: 'x'.repeat(100_000) };
  const ids = new Set<string>();
  for (let count = 0; count < 40; count += 1) {
    const { id } = await tasks.enqueue({ type: 'report-gen', payload, tenant });
    ids.add(id);
  }
  const token = await api.token('read', tenant);
  const sizes: number[] = [];
  let cursor: string | undefined;
  do {
    const query = new URLSearchParams({ limit: '1000', ...(cursor && { cursor }) });
    const response = await api.ask(`/api/v1/jobs?${query.toString()}`, token);
    const page = (await response.json()) as { items: { id: string }[]; cursor?: string };
    for (const { id } of page.items) assert.ok(ids.delete(id));
    sizes.push(page.items.length);
    cursor = page.cursor;
  } while (cursor !== undefined);
  assert.deepEqual([sizes, ids.size], [[11, 11, 11, 7], 0]);
});

/** Returns the server's side of a response once it has data that the client does not read. */
async function whenUnread(t: TestContext, request: () => Socket) {
  const responses: ServerResponse[] = [];
  const add = (message: unknown): void => {
    responses.push((message as { readonly response: ServerResponse }).response);
  };
  subscribe('http.server.request.start', add);
  t.after(() => unsubscribe('http.server.request.start', add));
  const client = request();
  // Later requests of a connection have no socket while an earlier response is not read.
  const unread = (): Socket | undefined =>
    responses.map(({ socket }) => socket).find((socket) => (socket?.writableLength ?? 0) > 0) ??
    undefined;
  await eventually('a response is not read', () => unread() !== undefined);
  return { client, server: unread() ?? assert.fail('the client disconnected') };
}

test('server-sent events: no page is loaded for a client that does not read, and it is disconnected', async (t) => {
  const { observer, warnings } = recordWarnings();
  await using api = await openApi({ observer });
  await appendLarge(api, 40, 500_000);
  const token = await api.token('read', tenant);
  const { client, server } = await whenUnread(t, () =>
    requestUnread(api, '/api/v1/events/subscribe', token),
  );
  assert.equal(server.timeout, httpLimits.unreadMsMax);
  server.emit('timeout');
  assert.deepEqual(warnings, ['slow client disconnected']);
  let received = 0;
  let text = '';
  client.on('data', (part: Buffer) => {
    received += part.length;
    text = (text + part.toString('latin1')).slice(-1_000);
  });
  client.resume();
  await once(client, 'close');
  assert.ok(received < 20 * 500_000, `the server wrote ${received} bytes`);
  assert.match(text, /event: closed\ndata: \{"code":"CLIENT_TOO_SLOW"\}/);
});

test('a client that does not read a page is disconnected', async (t) => {
  const { observer, warnings } = recordWarnings();
  await using api = await openApi({ observer });
  const stream = await appendLarge(api, 3, 500_000);
  const token = await api.token('read', tenant);
  const path = `/api/v1/streams/${stream}/events`;
  const { client, server } = await whenUnread(t, () => {
    const socket = requestUnread(api, path, token);
    // More than the buffers of both sockets hold.
    for (let count = 0; count < 15; count += 1) {
      socket.write(
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`,
      );
    }
    return socket;
  });
  assert.equal(server.timeout, httpLimits.unreadMsMax);
  server.emit('timeout');
  assert.deepEqual(warnings, ['slow client disconnected']);
  assert.equal(server.destroyed, true);
  client.destroy();
});

test('a WebSocket that does not read gets one page, and is closed with 4408', async (t) => {
  await using api = await openApi();
  await appendLarge(api, 40, 500_000);
  const token = await api.token('read', tenant);
  t.mock.timers.enable({ apis: ['setInterval'] });
  const socket = new WebSocket(`${api.server.url.replace('http', 'ws')}/ws`, {
    headers: { authorization: `Bearer ${token}` },
  });
  await once(socket, 'open');
  let events = 0;
  const outcome = Promise.withResolvers<number | string>();
  socket.on('close', (code) => outcome.resolve(code));
  socket.on('message', (data: Buffer) => {
    if (data.length > 100_000) events += 1;
    else if (data.includes('duplicate subscription')) outcome.resolve('still served');
  });
  socket.send(JSON.stringify({ type: 'subscribe', id: 's' }));
  await once(socket, 'message');
  socket.pause();
  t.mock.timers.tick(2 * wsLimits.heartbeatMs);
  // Without the close, this message would get a reply.
  socket.send(JSON.stringify({ type: 'subscribe', id: 's' }));
  socket.resume();
  assert.equal(await outcome.promise, 4408);
  assert.ok(events < 20, `${events} events were sent`);
});

test('wrong tokens and unknown paths are limited, and health checks are not', async () => {
  // No request of a slow machine is allowed by the time that has passed.
  const rate = { perSecond: 0.001, burst: 20 };
  await using api = await openApi({ rateLimits: { known: rate, unknown: rate } });
  const statuses = async (path: string, token?: string): Promise<number[]> =>
    Promise.all(Array.from({ length: 40 }, async () => (await api.ask(path, token)).status));
  const wrong = await statuses('/api/v1/events', 'mr_wrong');
  assert.ok(wrong.includes(401) && wrong.includes(429));
  const unknown = await statuses('/api/v1/nothing');
  assert.deepEqual([...new Set(unknown)], [429], 'both count for the address');
  assert.equal((await api.ask('/health/live')).status, 200);
  const token = await api.token('read', tenant);
  assert.equal((await api.ask('/api/v1/events', token)).status, 200);
});

test('idle connections of one address leave room for others and for health checks', async () => {
  await using api = await openApi({ limits: { connectionsMax: 50, connectionsPerAddressMax: 10 } });
  const idle = Array.from({ length: 30 }, () => connect(api.server.port, '127.0.0.1'));
  for (const socket of idle) socket.on('error', () => undefined);
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  const closed = idle.map((socket) => once(socket, 'close'));
  // The reserve has room for some of them; all others are closed at once.
  await eventually('connections are refused', () => idle.some(({ destroyed }) => destroyed));
  const other = connect({ port: api.server.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  other.write('GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
  const [answer] = (await once(other, 'data')) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 401 /);
  for (const socket of idle.slice(-5)) socket.destroy();
  const free = idle.filter(({ destroyed }) => destroyed).length;
  assert.ok(free >= 12, `${free} connections were refused`);
  for (const socket of idle) socket.destroy();
  await Promise.all(closed);
});

test('a connection above the limit of its address serves health checks only', async () => {
  await using api = await openApi({ limits: { connectionsPerAddressMax: 2 } });
  const idle = [1, 2].map(() => connect(api.server.port, '127.0.0.1'));
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  const request = async (path: string): Promise<string> => {
    const socket = connect(api.server.port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return answer.toString().split('\r\n', 1)[0] ?? '';
  };
  assert.equal(await request('/health/live'), 'HTTP/1.1 200 OK');
  assert.equal(await request('/openapi.json'), 'HTTP/1.1 429 Too Many Requests');
  for (const socket of idle) socket.destroy();
  await eventually('there is room again', async () =>
    (await request('/openapi.json')).includes('200'),
  );
});
