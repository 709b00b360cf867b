// Routes and messages of modules: the same limits and checks as for the API, with custom error formats.

import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { SignJWT } from 'jose';
import { Type } from '../../contracts/type.ts';
import { createPlatform, defineModule, route, type ModuleWeb } from '../../platform/index.ts';
import { hasCode } from '../../foundation/index.ts';
import { defineSocket } from '../../platform/modules/module-web.ts';
import type { Principal } from '../../platform/modules/principal.ts';
import { body, openApi, until, type Api } from '../../testing/support/server/api-rig.ts';
import { startApi } from './start-api.ts';

interface Received {
  readonly type: string;
  readonly [name: string]: unknown;
}

function connect(api: Pick<Api, 'server'>, token?: string) {
  const query = token === undefined ? '' : `?token=${token}`;
  const socket = new WebSocket(`${api.server.url.replace('http', 'ws')}/ws${query}`, 'millrace.v1');
  const received: Received[] = [];
  let closedBy: number | undefined;
  socket.addEventListener('message', ({ data }) =>
    received.push(JSON.parse(String(data)) as Received),
  );
  socket.addEventListener('close', ({ code }) => (closedBy = code));
  return {
    received,
    send: (message: object) => socket.send(JSON.stringify(message)),
    async waitFor(type: string): Promise<Received> {
      await until(() => received.some((each) => each.type === type));
      return received.find((each) => each.type === type) as Received;
    },
    opened: () => until(() => socket.readyState === socket.OPEN),
    async closed(): Promise<number | undefined> {
      await until(() => closedBy !== undefined);
      return closedBy;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

test('a module route is validated, authorized and documented like an API route, with an error format of the module', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const put = (content: unknown, by?: string) => api.post('/vault/v1', content, by);
  assert.equal((await put({ amount: 5 }, token)).status, 201);
  const responses = {
    'what does not fit': await put({ amount: 'much' }, token),
    'no credentials': await put({ amount: 5 }),
    'another scope': await put({ amount: 5 }, await api.token('read', 'core')),
    'a rule': await put({ amount: 2_000 }, token),
    'another tenant': await api.ask('/vault/v1', await api.token('read', 'acme')),
    'no JSON': await api.ask('/vault/v1', token, { method: 'POST', body: '{' }),
    'too large': await put({ amount: 5, more: 'x'.repeat(1_100_000) }, token),
  };
  const received = await Promise.all(
    Object.entries(responses).map(async ([what, response]) => {
      assert.equal(response.headers.get('x-bank'), 'closed', what);
      assert.equal(response.headers.get('content-type'), 'application/json', what);
      const { error } = await body<{ error: { code: string } }>(response);
      return [what, response.status, error.code];
    }),
  );
  assert.deepEqual(received, [
    ['what does not fit', 400, 'REQUEST_INVALID'],
    ['no credentials', 401, 'NOT_AUTHENTICATED'],
    ['another scope', 403, 'NOT_ALLOWED'],
    ['a rule', 409, 'COMMAND_REJECTED'],
    ['another tenant', 404, 'NOT_FOUND'],
    ['no JSON', 415, 'MEDIA_TYPE_UNKNOWN'],
    ['too large', 413, 'REQUEST_TOO_LARGE'],
  ]);
  const { paths } = await body<{ paths: Record<string, object> }>(await api.ask('/openapi.json'));
  const described = JSON.stringify([paths['/vault/{id}'], paths['/ws']]);
  for (const part of ['"maximum":2000', '"error"', 'bell.hear', 'bell.rung']) {
    assert.ok(described.includes(part), part);
  }
});

test('the scope use allows module routes, but no streams, commands or documents', async () => {
  await using api = await openApi();
  await api.post('/vault/v1', { amount: 5 }, await api.token('append', 'core'));
  const person = await api.token('use', 'core');
  await until(async () => (await api.ask('/vault/v1', person)).status === 200);
  const others = [
    await api.post('/vault/v1', { amount: 5 }, person),
    await api.post('/api/v1/commands/account.deposit', { id: 'v1', payload: {} }, person),
    await api.ask('/api/v1/documents/banking/account/v1', person),
    await api.ask('/api/v1/streams/banking.account.v1-core-v1/events', person),
    await api.ask('/admin/dlq', person),
  ];
  assert.deepEqual(
    others.map(({ status }) => status),
    [403, 403, 403, 403, 403],
  );
  using client = connect(api, person);
  await client.waitFor('ready');
  client.send({ type: 'subscribe', id: 's', category: 'banking.account.v1' });
  assert.equal((await client.waitFor('problem'))['id'], 's');
});

test('a worker calls no route of a module, and its connection has no messages of modules', async () => {
  await using api = await openApi();
  const worker = await api.token('work', 'core');
  assert.equal((await api.ask('/vault/v1', worker)).status, 403);
  using client = connect(api, worker);
  await client.waitFor('ready');
  client.send({ type: 'bell.hear', times: 1 });
  assert.equal((await client.waitFor('error'))['code'], 'NOT_ALLOWED');
});

test('rejects at start a route that hides an API route, and a duplicate message', async () => {
  const hiding = (web: ModuleWeb) => defineModule({ name: 'hiding', web: () => web });
  const served = (path: string): ModuleWeb => ({
    routes: [
      route({
        method: 'GET',
        path,
        summary: '',
        tag: '',
        access: 'read',
        responses: {},
        handle: async () => ({}),
      }),
    ],
  });
  const taking = (...types: string[]): ModuleWeb => ({
    socket: defineSocket({
      messages: Object.fromEntries(types.map((type) => [type, Type.Object({})])),
      sends: {},
      connect: () => ({ on: {} }),
    }),
  });
  const webs = [
    served('/health/live'),
    served('/api/v1/documents/collab/{aggregate}'),
    served('/{any}/dlq'),
    taking('subscribe'),
  ];
  for (const web of webs) {
    await using platform = await createPlatform({
      engines: { store: 'memory:' },
      modules: [hiding(web)],
    });
    await assert.rejects(startApi(platform, { port: 0 }), (error) =>
      hasCode(error, 'CONFIG_INVALID'),
    );
  }
});

test('validates and responds to module messages, and disposes their session with the connection', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  using client = connect(api, token);
  const hello = await client.waitFor('bell.hello');
  assert.deepEqual(
    client.received.map(({ type }) => type),
    ['ready', 'bell.hello'],
  );
  assert.equal(typeof hello['name'], 'string');
  client.send({ type: 'bell.hear', times: 2 });
  await client.waitFor('bell.heard');
  await api.post('/vault/v1', { amount: 7 }, token);
  await until(() => client.received.filter(({ type }) => type === 'bell.rung').length === 2);
  client.send({ type: 'bell.hear', times: 9, id: 'x' });
  assert.deepEqual(await client.waitFor('error'), {
    type: 'error',
    code: 'REQUEST_INVALID',
    message: client.received.find(({ type }) => type === 'error')?.['message'],
    id: 'x',
  });
  client.send({ type: 'bell.break', id: 'y' });
  await until(() => client.received.some(({ code, id }) => code === 'NOT_ALLOWED' && id === 'y'));
  client.send({ type: 'bell.unknown' });
  assert.equal((await client.waitFor('problem')).type, 'problem');
  client[Symbol.dispose]();
  await client.closed();
  await until(() => api.server.connections === 0);
  // The topic has no members, so publishing sends nothing and does not fail.
  assert.equal((await api.post('/vault/v1', { amount: 7 }, token)).status, 201);
});

test('accepts a valid token in the URL, and rejects an upgrade with an invalid one', async () => {
  await using api = await openApi();
  using bad = connect(api, 'mr_nobody');
  assert.equal(await bad.closed(), 1006);
  using late = connect(api);
  await late.opened();
  late.send({ type: 'bell.hear', times: 1 });
  assert.equal(await late.closed(), 4401);
});

test('messages that a module sends in one turn are written together, in order', async (t) => {
  let send: (text: string) => void = () => undefined;
  const talk = defineSocket({
    messages: {},
    sends: {},
    connect(client) {
      send = client.send;
      return { on: {} };
    },
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'talk', web: () => ({ socket: talk }) })],
  });
  const { secret } = await platform.tokens.create({ name: 'a', scopes: ['read'] });
  await using server = await startApi(platform, { port: 0 });
  using client = connect({ server }, secret);
  await client.waitFor('ready');
  // Optional in the types: only streams that can write several chunks at once have it.
  const sockets = Socket.prototype as Required<Pick<Socket, '_writev'>>;
  const writes = t.mock.method(sockets, '_writev');
  const said = Array.from({ length: 100 }, (_, at) => ({ type: 'word', at }));
  for (const each of said) send(JSON.stringify(each));
  await until(() => client.received.length === 101);
  assert.deepEqual(client.received.slice(1), said);
  assert.equal(writes.mock.callCount(), 1);
  // Slightly less than the limit of unread data.
  const much = 'x'.repeat(400_000);
  for (let at = 0; at < 10; at += 1) send(JSON.stringify({ type: 'much', much }));
  await until(() => client.received.length === 111);
});

test('a client that does not read is disconnected', async () => {
  let [cut, sessions] = [false, 0];
  const flood = defineSocket({
    messages: {},
    sends: {},
    connect(client) {
      client.signal.addEventListener('abort', () => (cut = true));
      const text = JSON.stringify({ type: 'flood', text: 'x'.repeat(10_000) });
      for (let at = 0; at < 1_000; at += 1) client.send(text);
      sessions += 1;
      return { on: {}, [Symbol.dispose]: () => void (sessions -= 1) };
    },
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'flood', web: () => ({ socket: flood }) })],
  });
  const { secret } = await platform.tokens.create({ name: 'a', scopes: ['read'] });
  await using server = await startApi(platform, { port: 0, wsLimits: { unreadBytesMax: 100_000 } });
  using client = connect({ server }, secret);
  assert.equal(await client.closed(), 4408);
  assert.deepEqual([cut, sessions], [true, 0]);
});

test('a module that fails to accept a connection closes only that connection', async () => {
  const broken = defineSocket({
    messages: {},
    sends: {},
    connect: () => {
      throw new Error('out of order');
    },
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'broken', web: () => ({ socket: broken }) })],
  });
  const { secret } = await platform.tokens.create({ name: 'a', scopes: ['read'] });
  await using server = await startApi(platform, { port: 0 });
  using client = connect({ server }, secret);
  assert.equal(await client.closed(), 1011);
  assert.equal((await fetch(`${server.url}/health/live`)).status, 200);
});

test('resources of a module are disposed after the server, even if the start failed', async () => {
  let open = 0;
  const web = (): ModuleWeb => {
    open += 1;
    return {
      async [Symbol.asyncDispose]() {
        open -= 1;
      },
    };
  };
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'door', web })],
  });
  const server = await startApi(platform, { port: 0 });
  assert.equal(open, 1);
  await assert.rejects(startApi(platform, { port: server.port }));
  assert.equal(open, 1);
  await server[Symbol.asyncDispose]();
  assert.equal(open, 0);
});

test('a module gets the user name and the verified email address of a JWT', async () => {
  const seen: Principal[] = [];
  const who = route({
    method: 'GET',
    path: '/who',
    summary: '',
    tag: '',
    access: 'read',
    responses: {},
    async handle({ principal }) {
      if (principal !== undefined) seen.push(principal);
      return {};
    },
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'who', web: () => ({ routes: [who] }) })],
  });
  const secret = 'a secret of at least thirty-two bytes';
  await using server = await startApi(platform, { port: 0, jwt: { secret, audience: 'collab' } });
  for (const isVerified of [true, false]) {
    const jwt = await new SignJWT({
      tenant: 'core',
      scope: 'read',
      preferred_username: 'alex',
      email: 'alex@example.com',
      email_verified: isVerified,
    })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('sub-1')
      .setAudience('collab')
      .setExpirationTime('1h')
      .sign(Buffer.from(secret));
    await fetch(`${server.url}/who`, { headers: { authorization: `Bearer ${jwt}` } });
  }
  assert.deepEqual(
    seen.map(({ name, username, email }) => [name, username, email]),
    [
      ['sub-1', 'alex', 'alex@example.com'],
      ['sub-1', 'alex', undefined],
    ],
  );
});
