// Sign-in of the console, and requests of foreign pages that a browser would send with its cookie.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { openApi, type Api } from '../../testing/support/server/api-rig.ts';

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Unlike `fetch`, sets the headers of a browser. */
async function send(
  api: Api,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: unknown,
): Promise<Answer> {
  const sent = request(`${api.server.url}${path}`, { method, headers });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

const json = { 'content-type': 'application/json' };
const own = { 'sec-fetch-site': 'same-origin' };
const ours = { ...own, 'x-millrace-app': 'console' };

async function signIn(api: Api, credentials: object): Promise<string> {
  const answer = await send(api, 'POST', '/console/session', { ...json, ...own }, credentials);
  assert.equal(answer.status, 204, answer.body);
  const [cookie = ''] = answer.headers['set-cookie'] ?? [];
  assert.match(cookie, /; Path=\/; Max-Age=4\d{4}; HttpOnly; SameSite=Strict$/);
  return cookie.split(';', 1)[0] ?? '';
}

test('a token becomes a session that may call what the scopes of the token allow', async () => {
  await using api = await openApi();
  const secret = await api.token('operate');
  const cookie = await signIn(api, { token: secret });
  assert.match(cookie, new RegExp(`^millrace-console-${api.server.port}=mr_`));
  assert.equal(cookie.includes(secret), false);
  const answer = await send(api, 'GET', '/console/session', { ...ours, cookie });
  const { session } = JSON.parse(answer.body) as { session: { name: string; may: string[] } };
  assert.ok(session.may.includes('POST /admin/dlq/replay'));
  assert.equal(session.may.includes('POST /admin/tokens'), false);
  assert.equal((await send(api, 'GET', '/admin/dlq', { ...ours, cookie })).status, 200);
  assert.equal((await send(api, 'GET', '/admin/tokens', { ...ours, cookie })).status, 403);
  const records = await api.platform.engines.store.readAll({ filter: { system: true } }).toArray();
  assert.match(JSON.stringify(records), /"console\.sign-in"/);
  assert.equal(JSON.stringify(records).includes(cookie.slice(-43)), false);
});

test('the cookie does not count for requests of other pages, forms and navigations', async () => {
  await using api = await openApi();
  const cookie = await signIn(api, { token: await api.token('admin') });
  const { host } = new URL(api.server.url);
  const forged: readonly Readonly<Record<string, string>>[] = [
    {},
    own,
    { 'x-millrace-app': 'console' },
    { ...ours, 'sec-fetch-site': 'cross-site' },
    { ...ours, 'sec-fetch-site': 'same-site' },
    { ...ours, 'sec-fetch-site': 'none' },
    { 'x-millrace-app': 'console', origin: 'https://evil.example' },
    { 'x-millrace-app': 'console', origin: 'null' },
    { ...ours, 'x-millrace-app': 'other' },
  ];
  for (const headers of forged) {
    const all = { ...json, ...headers, cookie };
    const answer = await send(api, 'POST', '/admin/dlq/replay', all, { all: true });
    assert.equal(answer.status, 401, JSON.stringify(headers));
  }
  const old = { 'x-millrace-app': 'console', origin: `http://${host}`, ...json, cookie };
  assert.equal((await send(api, 'POST', '/admin/dlq/replay', old, { all: true })).status, 202);
});

test('only a page of this server can open a session', async () => {
  await using api = await openApi();
  const token = await api.token('admin');
  const call = (headers: Readonly<Record<string, string>>, body: unknown = { token }) =>
    send(api, 'POST', '/console/session', headers, body);
  assert.equal((await call({ ...json, 'sec-fetch-site': 'cross-site' })).status, 403);
  assert.equal((await call({ ...json, origin: 'https://evil.example' })).status, 403);
  assert.equal((await call({ ...own, 'content-type': 'text/plain' })).status, 415);
  assert.equal(
    (await call({ ...own, 'content-type': 'application/x-www-form-urlencoded' })).status,
    415,
  );
  assert.equal((await call({ ...json, ...own }, { token: 'mr_wrong' })).status, 401);
  assert.equal((await call({ ...json, ...own }, {})).status, 400);
  assert.equal((await call({ ...json, ...own }, { token, link: 'x' })).status, 400);
  assert.equal((await call({ ...json, ...own, host: 'evil.example' })).status, 421);
});

test('behind TLS the cookie belongs to the host alone', async () => {
  await using api = await openApi();
  const token = await api.token('read');
  const headers = { ...json, ...own, origin: 'https://ops.example' };
  const answer = await send(api, 'POST', '/console/session', headers, { token });
  const [cookie = ''] = answer.headers['set-cookie'] ?? [];
  assert.match(cookie, /^__Host-millrace-console=mr_.*; HttpOnly; SameSite=Strict; Secure$/);
  const value = cookie.split(';', 1)[0] ?? '';
  assert.equal((await send(api, 'GET', '/api/v1/events', { ...ours, cookie: value })).status, 200);
});

test('a link signs in once, and a revoked token or a sign-out ends the session', async () => {
  await using api = await openApi();
  const { tokens } = api.platform;
  await tokens.create({ name: 'admin', scopes: ['admin'] });
  const { code } = await tokens.createLink('admin');
  const cookie = await signIn(api, { link: code });
  const again = await send(api, 'POST', '/console/session', { ...json, ...own }, { link: code });
  assert.equal(again.status, 401);
  assert.equal((await send(api, 'GET', '/admin/tokens', { ...ours, cookie })).status, 200);
  const bearer = { authorization: `Bearer ${cookie.split('=')[1] ?? ''}` };
  assert.equal((await send(api, 'GET', '/admin/tokens', bearer)).status, 401);
  await tokens.revoke('admin');
  assert.equal((await send(api, 'GET', '/admin/tokens', { ...ours, cookie })).status, 401);
  const answer = await send(api, 'GET', '/console/session', { ...ours, cookie });
  assert.deepEqual(JSON.parse(answer.body), { session: null });

  const other = await signIn(api, { token: await api.token('read') });
  const out = await send(api, 'DELETE', '/console/session', { ...ours, cookie: other });
  assert.match(out.headers['set-cookie']?.[0] ?? '', /=; Path=\/; Max-Age=0;/);
  assert.equal((await send(api, 'GET', '/api/v1/events', { ...ours, cookie: other })).status, 401);
});

test('a WebSocket uses the cookie only with the origin and the subprotocol of the console', async () => {
  await using api = await openApi();
  const cookie = await signIn(api, { token: await api.token('admin') });
  const url = `${api.server.url.replace('http', 'ws')}/ws`;
  const first = async (protocols: readonly string[], origin?: string): Promise<string> => {
    const headers = { cookie, ...(origin === undefined ? {} : { origin }) };
    const socket = new WebSocket(url, [...protocols], { headers });
    socket.on('error', () => undefined);
    const outcome = await Promise.race([
      once(socket, 'message').then(([data]) => String(data)),
      once(socket, 'unexpected-response').then(([, response]) =>
        String((response as { statusCode: number }).statusCode),
      ),
      once(socket, 'open').then(async () => {
        socket.send('{"type":"subscribe","id":"a"}');
        return String(await once(socket, 'message'));
      }),
    ]);
    socket.terminate();
    return outcome;
  };
  const both = ['millrace.v1', 'millrace.console'];
  assert.match(await first(both, api.server.url), /"ready"/);
  assert.equal(await first(both, 'https://evil.example'), '403');
  assert.match(await first(both), /NOT_AUTHENTICATED/);
  assert.match(await first(['millrace.v1'], api.server.url), /NOT_AUTHENTICATED/);
});
