// The HTTP server from the view of clients: correct statuses, problems with a remedy, and no internal details.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { startHttpServer, type HttpServer, type HttpServerOptions } from './http-server.ts';
import { notAuthenticated, type Principal } from '../../platform/modules/principal.ts';
import { route, type Route } from '../../platform/modules/route.ts';

const principals: Readonly<Record<string, Principal>> = {
  reader: { kind: 'token', name: 'reader', tenant: 'core', scopes: ['read'] },
  boss: { kind: 'token', name: 'boss', scopes: ['admin'] },
};

const responses = { 200: { description: 'fine' } };
const echo = route({
  method: 'POST',
  path: '/echo/{name}',
  summary: 'Says what it got',
  tag: 'demo',
  access: 'anonymous',
  params: Type.Object({ name: Type.String({ maxLength: 5 }) }),
  query: Type.Object({
    count: Type.Optional(Type.Integer({ minimum: 0 })),
    loud: Type.Optional(Type.Boolean()),
    tag: Type.Optional(Type.Array(Type.String())),
  }),
  body: Type.Object({ text: Type.String() }, { additionalProperties: false }),
  responses,
  handle: async ({ params, query, body }) => ({ body: { params, query, body } }),
});

function get(path: string, more: Partial<Route> = {}): Route {
  const base = {
    method: 'GET',
    path,
    summary: path,
    tag: 'demo',
    access: 'anonymous',
    responses,
  } as const;
  return { ...base, handle: async () => ({ body: { path } }), ...more };
}

async function serve(
  routes: readonly Route[],
  options: Partial<HttpServerOptions> = {},
): Promise<HttpServer> {
  return startHttpServer({
    routes,
    port: 0,
    authenticate: async (authorization) => {
      if (authorization === undefined) return undefined;
      const principal = principals[authorization.replace('Bearer ', '')];
      if (principal === undefined) throw notAuthenticated('unknown token');
      return principal;
    },
    ...options,
  });
}

const post = (
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

async function problem(
  response: Response,
): Promise<{ status: number; code: string; detail: string }> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const body = (await response.json()) as { status: number; code: string; detail: string };
  assert.equal(body.status, response.status);
  return body;
}

test('a route gets validated inputs, with numbers, booleans and lists parsed from the query', async () => {
  await using server = await serve([echo]);
  const response = await post(
    `${server.url}/echo/%C3%A4?count=3&loud=true&tag=a&tag=b`,
    '{"text":"hi"}',
  );
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), {
    params: { name: 'ä' },
    query: { count: 3, loud: true, tag: ['a', 'b'] },
    body: { text: 'hi' },
  });
});

for (const [what, path, body, headers, status, code] of [
  ['a body that is not JSON', '/echo/a', '{', {}, 400, 'REQUEST_INVALID'],
  ['an additional field', '/echo/a', '{"text":"","more":1}', {}, 400, 'REQUEST_INVALID'],
  ['a wrong type', '/echo/a', '{"text":1}', {}, 400, 'REQUEST_INVALID'],
  ['a missing body', '/echo/a', '', {}, 400, 'REQUEST_INVALID'],
  [
    'bytes that are not UTF-8',
    '/echo/a',
    new Uint8Array([0x22, 0xff, 0x22]),
    {},
    400,
    'REQUEST_INVALID',
  ],
  ['a count that is not a number', '/echo/a?count=x', '{"text":""}', {}, 400, 'REQUEST_INVALID'],
  ['a number below its minimum', '/echo/a?count=-1', '{"text":""}', {}, 400, 'REQUEST_INVALID'],
  ['a repeated parameter', '/echo/a?count=1&count=2', '{"text":""}', {}, 400, 'REQUEST_INVALID'],
  ['a path parameter that is too long', '/echo/abcdef', '{"text":""}', {}, 400, 'REQUEST_INVALID'],
  ['a broken percent-encoding', '/echo/%E0%A4%A', '{"text":""}', {}, 400, 'REQUEST_INVALID'],
  ['a form', '/echo/a', 'text=1', { 'content-type': 'text/plain' }, 415, 'MEDIA_TYPE_UNKNOWN'],
  ['a compressed body', '/echo/a', 'x', { 'content-encoding': 'gzip' }, 415, 'MEDIA_TYPE_UNKNOWN'],
  [
    'a body over the limit',
    '/echo/a',
    `{"text":"${'x'.repeat(200)}"}`,
    {},
    413,
    'REQUEST_TOO_LARGE',
  ],
  ['an unknown path', '/nowhere', '{}', {}, 404, 'NOT_FOUND'],
] as const) {
  test(`responds with ${status} to ${what}`, async () => {
    await using server = await serve([echo], { limits: { bodyBytesMax: 100 } });
    const response = await post(server.url + path, body, headers);
    assert.equal((await problem(response)).code, code);
    assert.equal(response.status, status);
  });
}

test('rejects a chunked body above the limit', async () => {
  await using server = await serve([echo], { limits: { bodyBytesMax: 1_000 } });
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('x'.repeat(600))),
  });
  const request = { method: 'POST', body, duplex: 'half' } as RequestInit;
  const response = await fetch(`${server.url}/echo/a`, {
    ...request,
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(response.status, 413);
});

test('responds to a wrong method with the allowed ones, and to HEAD without a body', async () => {
  await using server = await serve([get('/thing')]);
  const wrong = await fetch(`${server.url}/thing`, { method: 'DELETE' });
  assert.equal(wrong.status, 405);
  assert.equal(wrong.headers.get('allow'), 'GET');
  const head = await fetch(`${server.url}/thing`, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), '17');
  assert.equal(await head.text(), '');
});

test('missing, invalid or insufficient credentials are rejected', async () => {
  await using server = await serve([
    get('/read', { access: 'read' }),
    get('/do', { access: 'append' }),
  ]);
  const ask = (path: string, token?: string) =>
    fetch(server.url + path, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
  const anonymous = await ask('/read');
  assert.equal(anonymous.headers.get('www-authenticate'), 'Bearer');
  assert.equal((await problem(anonymous)).code, 'NOT_AUTHENTICATED');
  assert.equal((await ask('/read', 'stranger')).status, 401);
  assert.equal((await ask('/read', 'reader')).status, 200);
  assert.equal((await problem(await ask('/do', 'reader'))).code, 'NOT_ALLOWED');
  assert.equal((await ask('/do', 'boss')).status, 200);
});

test('responds to an unexpected error with 500 and no details, and logs it with the request id', async () => {
  const logged: { requestId?: string; err?: unknown }[] = [];
  const log = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error: (fields: object) => logged.push(fields),
  };
  const secret = new Error('password is hunter2');
  const inside = new MillraceError('STORE_CORRUPT', 'table x');
  const failing = (error: Error) => async () => {
    throw error;
  };
  await using server = await serve(
    [get('/a', { handle: failing(secret) }), get('/b', { handle: failing(inside) })],
    { observer: { log } },
  );
  for (const path of ['/a', '/b']) {
    const response = await fetch(server.url + path);
    const text = await response.text();
    assert.equal(response.status, 500);
    assert.doesNotMatch(text, /hunter2|table x|\.ts:/);
    assert.match(text, new RegExp(response.headers.get('x-request-id') ?? 'none'));
  }
  assert.deepEqual(
    logged.map(({ err }) => err),
    [secret, inside],
  );
});

test('a rate-limited caller gets Retry-After', async () => {
  await using server = await serve([get('/thing')], {
    admit: () => {
      throw new MillraceError('RATE_LIMITED', 'slow down', { details: { retryAfterSeconds: 7 } });
    },
  });
  const response = await fetch(`${server.url}/thing`);
  assert.equal(response.status, 429);
  assert.equal(response.headers.get('retry-after'), '7');
});

test('allows only browsers of the configured origins', async () => {
  await using server = await serve([get('/thing')], { corsOrigins: ['https://console.example'] });
  const from = (origin: string, method = 'GET') =>
    fetch(`${server.url}/thing`, { method, headers: { origin } });
  const known = await from('https://console.example', 'OPTIONS');
  assert.equal(known.status, 204);
  assert.equal(known.headers.get('access-control-allow-origin'), 'https://console.example');
  const strange = await from('https://evil.example');
  assert.equal(strange.headers.get('access-control-allow-origin'), null);
  assert.equal((await from('https://evil.example', 'OPTIONS')).status, 405);
});

test('a client that sends too slowly is disconnected', async () => {
  await using server = await serve([echo], { limits: { receiveMsMax: 200 } });
  const socket = connect(server.port, '127.0.0.1');
  socket.write(
    'POST /echo/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{',
  );
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
  await once(socket, 'close');
  assert.match(text, /^HTTP\/1.1 408|^$/);
});

test('stopping the server waits for requests, closes streams and rejects new connections', async () => {
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = get('/slow', {
    handle: async ({ signal }) => {
      begun.resolve();
      await goOn.promise;
      assert.equal(signal.aborted, false);
      return { body: 'done' };
    },
  });
  const endless = get('/endless', {
    isLong: true,
    handle: async ({ signal }) => ({
      contentType: 'text/plain',
      stream: (async function* () {
        yield 'first';
        await once(signal, 'abort');
      })(),
    }),
  });
  const server = await serve([slow, endless]);
  const pending = fetch(`${server.url}/slow`);
  const stream = await fetch(`${server.url}/endless`);
  await begun.promise;
  const stopped = server[Symbol.asyncDispose]();
  assert.equal(await stream.text(), 'first');
  goOn.resolve();
  assert.equal(await (await pending).json(), 'done');
  await stopped;
  await assert.rejects(fetch(`${server.url}/slow`));
});

test('stopping the server cancels requests that exceed the drain time', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  const hanging = get('/hang', {
    handle: async ({ signal }) => {
      begun.resolve(signal);
      await once(signal, 'abort');
      return {};
    },
  });
  const server = await serve([hanging], { limits: { drainMsMax: 50 } });
  const failing = assert.rejects(fetch(`${server.url}/hang`));
  const signal = await begun.promise;
  await server[Symbol.asyncDispose]();
  assert.equal(signal.aborted, true);
  await failing;
});

test('a request is aborted when the client disconnects or its credentials end, but not after its response', async () => {
  const ending = new AbortController();
  const begun = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<AbortSignal>()];
  let calls = 0;
  const waiting = get('/wait', {
    handle: async ({ signal }) => {
      begun[calls]?.resolve(signal);
      calls += 1;
      await once(signal, 'abort');
      return { body: 'done' };
    },
  });
  const quick = Promise.withResolvers<AbortSignal>();
  const immediate = get('/quick', {
    handle: async ({ signal }) => {
      quick.resolve(signal);
      return { body: 'at once' };
    },
  });
  const clerk = { kind: 'token', name: 'clerk', scopes: [], ended: ending.signal } as const;
  const server = await serve([waiting, immediate], { authenticate: async () => clerk });
  const leaving = new AbortController();
  const left = assert.rejects(fetch(`${server.url}/wait`, { signal: leaving.signal }));
  const firstSignal = await begun[0]?.promise;
  leaving.abort();
  await left;
  if (firstSignal?.aborted === false) await once(firstSignal, 'abort');

  const second = fetch(`${server.url}/wait`);
  await begun[1]?.promise;
  assert.equal(await (await fetch(`${server.url}/quick`)).json(), 'at once');
  ending.abort();
  assert.equal(await (await second).json(), 'done');
  await server[Symbol.asyncDispose]();
  assert.equal((await quick.promise).aborted, false);
});

test('starting on a used port rejects with SERVER_UNAVAILABLE', async () => {
  await using server = await serve([]);
  await assert.rejects(serve([], { port: server.port }), { code: 'SERVER_UNAVAILABLE' });
});

test('a client that disconnects before its body is complete is not logged as a failure', async () => {
  const failures: unknown[] = [];
  const quiet = (): void => undefined;
  const log = {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (fields: unknown) => failures.push(fields),
  };
  const status = Promise.withResolvers<unknown>();
  const record = (name: string, _value: number, attributes: object = {}): void => {
    if (name === 'http_request_duration_seconds') status.resolve({ ...attributes });
  };
  await using server = await serve([echo], { observer: { log, record } });
  const socket = connect(server.port, '127.0.0.1');
  const head = 'POST /echo/a HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n';
  socket.write(`${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`);
  // The server reads the body after it has sent 100 Continue.
  await once(socket, 'data');
  socket.destroy();
  await status.promise;
  assert.deepEqual(failures, []);
});
