// The WebSocket from the view of clients: subscriptions, commands, queries, and misbehaving clients.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { startHttpServer, type HttpServer } from '../http/http-server.ts';
import { route } from '../../platform/modules/route.ts';
import { createWsServer } from '../http/ws-server.ts';
import { openApi, until } from '../../testing/support/server/api-rig.ts';

interface Received {
  readonly type: string;
  readonly id?: string;
  readonly event?: { readonly tenant: string; readonly revision: number; readonly type: string };
  readonly result?: Readonly<Record<string, unknown>>;
  readonly problem?: { readonly code: string; readonly status: number };
}

interface Asked {
  readonly id: string;
  readonly [name: string]: unknown;
}

interface Client extends Disposable {
  readonly socket: WebSocket;
  readonly received: readonly Received[];
  say(message: unknown): void;
  /** The first message, received already or later, that matches. */
  hear(fits: (received: Received) => boolean): Promise<Received>;
  closed(): Promise<number>;
}

function open(
  api: { readonly server: Pick<HttpServer, 'url'> },
  token?: string,
  more: Readonly<Record<string, string>> = {},
): Client {
  const headers = token === undefined ? more : { authorization: `Bearer ${token}`, ...more };
  const socket = new WebSocket(`${api.server.url.replace('http', 'ws')}/ws`, 'millrace.v1', {
    headers,
  });
  const received: Received[] = [];
  const code = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.on('message', (data: Buffer) => received.push(JSON.parse(data.toString()) as Received));
  socket.on('error', () => {});
  return {
    socket,
    received,
    say: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async hear(fits) {
      await until(() => received.some(fits));
      return received.find(fits) as Received;
    },
    closed: () => code,
    [Symbol.dispose]: () => socket.terminate(),
  };
}

const isReady = ({ type }: Received): boolean => type === 'ready';
const of =
  (id: string, type: string) =>
  (received: Received): boolean =>
    received.id === id && received.type === type;
const deposit = (id: string, amount = 1) => ({
  type: 'command',
  id,
  command: 'account.deposit',
  aggregateId: 'a1',
  payload: { amount },
});

test('responds to a command with its id, sends its events, and returns its document', async () => {
  await using api = await openApi();
  using client = open(api, await api.token('append', 'core'));
  using reader = open(api, await api.token('read', 'core'));
  await reader.hear(isReady);
  reader.say({ type: 'subscribe', id: 's', types: ['account.deposited.v1'] });
  await reader.hear(of('s', 'caughtUp'));
  await client.hear(isReady);
  client.say({ ...deposit('c1', 5), idempotencyKey: 'order-1', correlationId: 'flow-1' });
  const { result } = await client.hear(of('c1', 'result'));
  assert.equal(result?.['correlationId'], 'flow-1');
  client.say({ ...deposit('c2', 5), idempotencyKey: 'order-1' });
  assert.equal((await client.hear(of('c2', 'result'))).result?.['isDuplicate'], true);
  assert.equal((await reader.hear(of('s', 'event'))).event?.revision, 0);
  const request = { type: 'query', bc: 'banking', aggregate: 'account' };
  const waitFor = result?.['position'];
  reader.say({ ...request, id: 'q1', documentId: 'a1', query: { waitFor } });
  assert.deepEqual((await reader.hear(of('q1', 'result'))).result?.['document'], { balance: 5 });
  reader.say({ ...request, id: 'q2', query: { range: 'balance', from: 4, to: 6 } });
  const page = (await reader.hear(of('q2', 'result'))).result as { readonly items: unknown[] };
  assert.equal(page.items.length, 1);
  reader.say({ type: 'unsubscribe', id: 's' });
  await reader.hear(of('s', 'unsubscribed'));
});

test('a subscription resumes after the last event, for all streams or one', async () => {
  await using api = await openApi();
  using client = open(api, await api.token('admin', 'core'));
  await client.hear(isReady);
  for (const id of ['c0', 'c1', 'c2']) {
    client.say(deposit(id));
    await client.hear(of(id, 'result'));
  }
  client.say({ type: 'subscribe', id: 's', stream: 'banking.account.v1-core-a1', after: '0' });
  await client.hear(of('s', 'caughtUp'));
  const revisions = client.received.filter(of('s', 'event')).map(({ event }) => event?.revision);
  assert.deepEqual(revisions, [1, 2]);
});

test('accepts valid credentials in the first message and rejects all other first messages', async () => {
  await using api = await openApi();
  const token = await api.token('read', 'core');
  using good = open(api);
  await once(good.socket, 'open');
  good.say({ type: 'auth', token });
  good.say({ type: 'subscribe', id: 's' });
  await good.hear(of('s', 'caughtUp'));
  using wrong = open(api);
  using rude = open(api);
  await Promise.all([once(wrong.socket, 'open'), once(rude.socket, 'open')]);
  wrong.say({ type: 'auth', token: 'mr_nobody' });
  rude.say({ type: 'subscribe', id: 's' });
  assert.deepEqual(await Promise.all([wrong.closed(), rude.closed()]), [4401, 4401]);
  assert.equal(wrong.received[0]?.problem?.status, 401);
  assert.equal(rude.received[0]?.problem?.status, 401);
  assert.equal(good.socket.readyState, WebSocket.OPEN);
  good.say({ type: 'auth', token });
  await good.hear(({ problem }) => problem?.code === 'REQUEST_INVALID');
});

test('a connection without credentials is closed after the time limit', async () => {
  await using api = await openApi({ wsLimits: { authMsMax: 50 } });
  using silent = open(api);
  assert.equal(await silent.closed(), 4401);
});

async function statusOfRejection(client: Client): Promise<number | undefined> {
  const [, response] = (await once(client.socket, 'unexpected-response')) as [
    unknown,
    { readonly statusCode?: number },
  ];
  return response.statusCode;
}

test('rejects invalid credentials, other origins and other paths before the upgrade', async () => {
  await using api = await openApi({ corsOrigins: ['https://shop.example'] });
  const token = await api.token('read', 'core');
  using wrong = open(api, 'mr_nobody');
  assert.equal(await statusOfRejection(wrong), 401);
  using foreign = open(api, token, { origin: 'https://evil.example' });
  assert.equal(await statusOfRejection(foreign), 403);
  using listed = open(api, token, { origin: 'https://shop.example' });
  await listed.hear(isReady);
  using own = open(api, token, { origin: api.server.url });
  await own.hear(isReady);
  const elsewhere = new WebSocket(`${api.server.url.replace('http', 'ws')}/other`);
  elsewhere.on('error', () => {});
  const [, response] = (await once(elsewhere, 'unexpected-response')) as [
    unknown,
    { readonly statusCode?: number },
  ];
  assert.equal(response.statusCode, 404);
  elsewhere.terminate();
  assert.equal((await api.ask('/ws')).status, 426);
});

test('a token gives access only to its tenant and its scopes', async () => {
  await using api = await openApi();
  await api.fail('acme');
  using client = open(api, await api.token('admin', 'core'));
  using reader = open(api, await api.token('read', 'core'));
  await Promise.all([client.hear(isReady), reader.hear(isReady)]);
  const code = async (from: Client, message: Asked) => {
    from.say(message);
    return (await from.hear(of(message.id, 'problem'))).problem?.code;
  };
  const follow = { type: 'subscribe' };
  const stream = 'banking.account.v1-acme-saga';
  assert.equal(await code(client, { ...follow, id: '1', stream }), 'NOT_ALLOWED');
  assert.equal(await code(client, { ...follow, id: '2', tenant: 'acme' }), 'NOT_ALLOWED');
  assert.equal(await code(client, { ...follow, id: '3', stream: '$all' }), 'NOT_ALLOWED');
  assert.equal(await code(client, { ...deposit('4'), tenant: 'acme' }), 'NOT_ALLOWED');
  const query = { type: 'query', bc: 'banking', aggregate: 'account', documentId: 'saga' };
  assert.equal(await code(client, { ...query, id: '5' }), 'NOT_FOUND');
  assert.equal(await code(client, { ...query, id: '6', tenant: 'acme' }), 'NOT_ALLOWED');
  assert.equal(await code(reader, deposit('7')), 'NOT_ALLOWED');
  client.say({ ...follow, id: 'all' });
  await client.hear(of('all', 'caughtUp'));
  assert.deepEqual(client.received.filter(of('all', 'event')), []);
});

test('an invalid message gets a problem with its id, and the connection stays open', async () => {
  await using api = await openApi({ wsLimits: { subscriptionsMax: 1 } });
  using client = open(api, await api.token('admin', 'core'));
  await client.hear(isReady);
  const codes: (string | undefined)[] = [];
  for (const [at, message] of [
    { type: 'dance' },
    { type: '__proto__' },
    { type: 'subscribe', after: 'tomorrow' },
    { type: 'subscribe', unknown: 1 },
    { type: 'unsubscribe' },
    { type: 'command', command: 'account.close', payload: {} },
    { type: 'command', command: 'account.deposit', aggregateId: 'a', payload: { amount: -1 } },
    { type: 'command', command: 'account.deposit', aggregateId: 'a', payload: { amount: 5_000 } },
    { type: 'query', bc: 'banking', aggregate: 'account', query: { limit: 0 } },
  ].entries()) {
    client.say({ ...message, id: `m${at}` });
    codes.push((await client.hear(of(`m${at}`, 'problem'))).problem?.code);
  }
  assert.deepEqual(codes, [
    'REQUEST_INVALID',
    'REQUEST_INVALID',
    'POSITION_INVALID',
    'REQUEST_INVALID',
    'REQUEST_INVALID',
    'NOT_FOUND',
    'PAYLOAD_INVALID',
    'COMMAND_REJECTED',
    'REQUEST_INVALID',
  ]);
  client.say('{not json');
  await client.hear(({ id, type }) => type === 'problem' && id === undefined);
  client.say({ type: 'subscribe', id: 's1' });
  await client.hear(of('s1', 'caughtUp'));
  client.say({ type: 'subscribe', id: 's1' });
  assert.equal((await client.hear(of('s1', 'problem'))).problem?.code, 'REQUEST_INVALID');
  client.say({ type: 'subscribe', id: 's2' });
  assert.equal((await client.hear(of('s2', 'problem'))).problem?.code, 'RATE_LIMITED');
});

test('revoking a token closes the connection', async () => {
  await using api = await openApi();
  const created = await api.platform.tokens.create({ name: 'revoked', scopes: ['read'] });
  using client = open(api, created.secret);
  await client.hear(isReady);
  await api.platform.tokens.revoke('revoked');
  assert.equal(await client.closed(), 4401);
});

test('expiring credentials close the connection', async () => {
  const never = async function* (): AsyncGenerator<never> {};
  await using ws = createWsServer({
    authenticate: async () => ({
      kind: 'jwt',
      name: 'ada',
      scopes: ['read'],
      expiresAtMs: Date.now() + 50,
    }),
    operations: { follow: async () => never(), execute: async () => ({}) },
  });
  await using server = await startHttpServer({
    routes: [],
    port: 0,
    authenticate: async () => undefined,
    onUpgrade: ws.onUpgrade,
  });
  using client = open({ server });
  assert.equal(await client.closed(), 4401);
});

test('binary, too large and invalid frames close the connection with their codes', async () => {
  await using api = await openApi({ wsLimits: { messageBytesMax: 1_000 } });
  const token = await api.token('read', 'core');
  using binary = open(api, token);
  using large = open(api, token);
  using broken = open(api, token);
  await Promise.all([binary, large, broken].map((client) => client.hear(isReady)));
  binary.socket.send(Buffer.from('{}'));
  large.say('x'.repeat(2_000));
  // Invalid UTF-8.
  broken.socket.send(Buffer.from([0xff, 0xfe]), { binary: false });
  assert.equal(await binary.closed(), 1003);
  assert.equal(await large.closed(), 1009);
  assert.equal(await broken.closed(), 1007);
});

test('a client that does not read is disconnected, and memory stays bounded', async () => {
  await using api = await openApi({
    wsLimits: { heartbeatMs: 100, closeMsMax: 50, unreadBytesMax: 200_000 },
  });
  const token = await api.token('admin', 'core');
  const events = Array.from({ length: 100 }, () => ({
    type: 'note.taken.v1',
    payload: { text: 'x'.repeat(9_000) },
  }));
  for (let at = 0; at < 10; at += 1) {
    await api.post('/api/v1/streams/notes.note.v1-core-n1/events', { events }, token);
  }
  const { port } = api.server;
  const socket = connect(port, '127.0.0.1');
  const key = Buffer.alloc(16).toString('base64');
  socket.write(
    [
      'GET /ws HTTP/1.1',
      `host: 127.0.0.1:${port}`,
      'upgrade: websocket',
      'connection: upgrade',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${key}`,
      `authorization: Bearer ${token}`,
      '',
      '',
    ].join('\r\n'),
  );
  await once(socket, 'readable');
  for (const id of ['a', 'b', 'c', 'd']) socket.write(frame({ type: 'subscribe', id }));
  // The client stops reading: the server buffers what the kernel does not accept, up to the limit.
  socket.pause();
  socket.on('error', () => {});
  await until(() => api.server.connections === 0);
  socket.destroy();
});

/** Clients must mask frames; zeros leave the bytes unchanged. */
function frame(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]);
}

test('stopping the server completes running requests, then closes with 1001', async () => {
  const started = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const slow = route({
    method: 'POST',
    path: '/api/v1/commands/demo.slow',
    summary: '',
    tag: '',
    access: 'append',
    responses: {},
    async handle() {
      started.resolve();
      await gate.promise;
      return { body: { ok: true } };
    },
  });
  const api = await openApi({ routes: [slow] });
  using client = open(api, await api.token('admin', 'core'));
  await client.hear(isReady);
  client.say({ type: 'subscribe', id: 's' });
  await client.hear(of('s', 'caughtUp'));
  client.say({ type: 'command', id: 'c', command: 'demo.slow', payload: {} });
  await started.promise;
  const stopped = api[Symbol.asyncDispose]();
  await client.hear(of('s', 'unsubscribed'));
  gate.resolve();
  await stopped;
  assert.equal(await client.closed(), 1001);
  assert.deepEqual(client.received.find(of('c', 'result'))?.result, { ok: true });
});
