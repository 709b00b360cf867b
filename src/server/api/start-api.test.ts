// The API from the view of clients: commands, documents, streams, and isolation of tenants.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { body, openApi } from '../../testing/support/server/api-rig.ts';

test('a command with a key is executed once, and its document can be read immediately', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const reader = await api.token('read', 'core');
  const send = () =>
    api.post('/api/v1/commands/account.deposit', { payload: { amount: 5 } }, token, {
      'idempotency-key': 'order-1',
      'x-correlation-id': 'flow-1',
    });
  interface Result {
    readonly id: string;
    readonly position: string;
    readonly isDuplicate: boolean;
    readonly correlationId: string;
    readonly events: readonly { readonly type: string }[];
  }
  const first = await body<Result>(await send());
  assert.equal(first.isDuplicate, false);
  assert.equal(first.correlationId, 'flow-1');
  assert.deepEqual(
    first.events.map(({ type }) => type),
    ['account.deposited.v1'],
  );
  const again = await body<Result>(await send());
  assert.equal(again.isDuplicate, true);
  assert.equal(again.id, first.id);
  const path = `/api/v1/documents/banking/account/${first.id}?waitFor=${first.position}`;
  const found = await body<{ document: unknown }>(await api.ask(path, reader));
  assert.deepEqual(found.document, { balance: 5 });
  const range = '/api/v1/documents/banking/account?range=balance&from=4&to=6';
  const page = await body<{ items: { id: string }[] }>(await api.ask(range, reader));
  assert.deepEqual(
    page.items.map(({ id }) => id),
    [first.id],
  );
});

test('a key that a client reuses with another payload is refused', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const path = '/api/v1/commands/account.deposit';
  const key = { 'idempotency-key': 'order-1' };
  const send = (payload: object) => api.post(path, { id: 'a1', payload }, token, key);
  assert.equal((await send({ amount: 5, by: 'ada' })).status, 200);
  const refused = await send({ amount: 777, by: 'ada' });
  assert.equal(refused.status, 409);
  const { code, detail } = await body<{ code: string; detail: string }>(refused);
  assert.equal(code, 'COMMAND_KEY_REUSED');
  assert.match(detail, /already used for 'account.deposit' on '.*' with another payload$/);
  // The order of the members is no difference.
  const again = await body<{ isDuplicate: boolean }>(await send({ by: 'ada', amount: 5 }));
  assert.equal(again.isDuplicate, true);
});

test('the sender of a command is the principal of the request', async () => {
  await using api = await openApi();
  const { secret } = await api.platform.tokens.create({
    name: 'ada',
    tenant: 'core',
    scopes: ['append'],
  });
  const sent = { id: 'a1', payload: { amount: 1, by: 'eve' } };
  await api.post('/api/v1/commands/account.deposit', sent, secret);
  const [event] = await api.platform.engines.store
    .readStream('banking.account.v1-core-a1')
    .toArray();
  assert.deepEqual([event?.user, event?.payload], [{ id: 'ada' }, { amount: 1 }]);
});

for (const [what, path, sent, status, code] of [
  [
    'an invalid payload',
    'account.deposit',
    { id: 'a', payload: { amount: -1 } },
    400,
    'PAYLOAD_INVALID',
  ],
  [
    'a command that a rule rejects',
    'account.deposit',
    { id: 'a', payload: { amount: 2_000 } },
    422,
    'COMMAND_REJECTED',
  ],
  ['an unknown command', 'account.close', { id: 'a', payload: {} }, 404, 'NOT_FOUND'],
  [
    'a command without id and key',
    'account.deposit',
    { payload: { amount: 1 } },
    400,
    'REQUEST_INVALID',
  ],
  ['an invalid id', 'account.deposit', { id: 'a b', payload: { amount: 1 } }, 400, 'NAME_INVALID'],
  [
    'a wrong expected revision',
    'account.deposit',
    { id: 'a', expected: 7, payload: { amount: 1 } },
    409,
    'VERSION_CONFLICT',
  ],
] as const) {
  test(`responds with ${status} to ${what}`, async () => {
    await using api = await openApi();
    const token = await api.token('append', 'core');
    const response = await api.post(`/api/v1/commands/${path}`, sent, token);
    assert.equal((await body<{ code: string }>(response)).code, code);
    assert.equal(response.status, status);
  });
}

const stream = 'shop.order.v1-core-a1';
const event = { type: 'order.placed.v1', payload: { amount: 3 } };

test('appends events at the expected revision, and reads them page by page', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const reader = await api.token('read', 'core');
  const append = (sent: object) => api.post(`/api/v1/streams/${stream}/events`, sent, token);
  assert.equal((await append({ events: [event, event, event], expected: 'none' })).status, 201);
  assert.equal((await append({ events: [event], expected: 'none' })).status, 409);
  assert.equal((await append({ events: [{ ...event, eventId: 'e-1' }] })).status, 201);
  assert.equal((await append({ events: [{ ...event, eventId: 'e-1' }] })).status, 200);
  type Page = { items: { revision: number; tenant: string }[]; cursor?: string };
  const first = await body<Page>(await api.ask(`/api/v1/streams/${stream}/events?limit=3`, reader));
  assert.deepEqual(
    first.items.map(({ revision }) => revision),
    [0, 1, 2],
  );
  const path = `/api/v1/streams/${stream}/events?limit=3&cursor=${first.cursor}`;
  const rest = await body<Page>(await api.ask(path, reader));
  assert.deepEqual(
    rest.items.map(({ revision }) => revision),
    [3],
  );
  assert.equal(rest.cursor, undefined);
  const deposits = '/api/v1/events?types=order.placed.v1';
  const all = await body<Page>(await api.ask(deposits, reader));
  assert.equal(all.items.length, 4);
  const three = await body<Page>(await api.ask(`${deposits}&limit=3`, reader));
  const last = await body<Page>(await api.ask(`${deposits}&cursor=${three.cursor}`, reader));
  assert.deepEqual(last.items, all.items.slice(3));
  assert.equal(last.cursor, undefined);
});

test('rejects events that would block an aggregate or that only a saga may append', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const admin = await api.token('admin', 'core');
  const append = async (to: string, type: string, payload: unknown, by: string) => {
    const sent = { events: [{ type, payload }] };
    const response = await api.post(`/api/v1/streams/${to}/events`, sent, by);
    return (await body<{ code?: string }>(response)).code ?? response.status;
  };
  const [account, deposited] = ['banking.account.v1-core-a1', 'account.deposited.v1'];
  const rejected = [
    await append(account, deposited, null, admin),
    await append(account, 'account.x.v1', {}, admin),
    // It would bypass the rules of the command.
    await append(account, deposited, { amount: 3 }, token),
    // A projection reads events by their types, also of other streams.
    await append(stream, deposited, { amount: 3 }, admin),
    await append('banking.review.v1-core-a1', 'review.parked.v1', {}, admin),
  ];
  assert.deepEqual(rejected, [
    'PAYLOAD_INVALID',
    'EVENT_UNKNOWN',
    'NOT_ALLOWED',
    'EVENT_UNKNOWN',
    'NOT_ALLOWED',
  ]);
  assert.equal(await append(account, deposited, { amount: 3 }, admin), 201);
  const sent = { id: 'a1', payload: { amount: 1 } };
  assert.equal((await api.post('/api/v1/commands/account.deposit', sent, token)).status, 200);
});

test('a follower gets stored and new events, and resumes after the last one', async () => {
  await using api = await openApi();
  const token = await api.token('append', 'core');
  const reader = await api.token('read', 'core');
  const append = () => api.post(`/api/v1/streams/${stream}/events`, { events: [event] }, token);
  await append();
  const feed = await api.ask('/api/v1/events/subscribe?types=order.placed.v1', reader);
  const texts = feed.body?.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  let seen = '';
  const untilSeen = async (pattern: RegExp): Promise<void> => {
    while (!pattern.test(seen)) seen += String((await texts?.next())?.value);
  };
  await untilSeen(/event: caughtUp/);
  await append();
  await untilSeen(/"revision":1/);
  await texts?.return?.();
  const [id] = /(?<=id: )\S+(?=\n)/.exec(seen) ?? [];
  assert.ok(id);
  const headers = { 'last-event-id': id };
  const rest = await api.ask('/api/v1/events/subscribe?types=order.placed.v1', reader, {
    headers,
  });
  const other = rest.body?.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  seen = '';
  while (!/event: caughtUp/.test(seen)) seen += String((await other?.next())?.value);
  assert.doesNotMatch(seen, /"revision":0/);
  assert.match(seen, /"revision":1/);
  await other?.return?.();
});

test('revoking a token closes its streams', async () => {
  await using api = await openApi();
  const { token, secret } = await api.platform.tokens.create({ name: 'revoked', scopes: ['read'] });
  const feed = await api.ask('/api/v1/events/subscribe', secret);
  await api.platform.tokens.revoke(token.name);
  await feed.text();
  assert.equal((await api.ask('/api/v1/events', secret)).status, 401);
});

test('data of other tenants cannot be read, written, followed or guessed', async () => {
  await using api = await openApi();
  const [mine, theirs] = [await api.token('append', 'core'), await api.token('admin', 'other')];
  await api.post(`/api/v1/streams/${stream}/events`, { events: [event] }, mine);
  for (const path of [
    `/api/v1/streams/${stream}`,
    `/api/v1/streams/${stream}/events`,
    `/api/v1/streams/${stream}/subscribe`,
    '/api/v1/streams/$all/events',
    '/api/v1/streams/%24millrace-tokens/events',
    '/api/v1/events?tenant=core',
    '/api/v1/events/subscribe?tenant=core',
  ]) {
    assert.equal((await api.ask(path, theirs)).status, 403, path);
  }
  const seen = await body<{ items: unknown[] }>(await api.ask('/api/v1/events', theirs));
  assert.deepEqual(seen.items, []);
  const asCore = { 'x-tenant-id': 'core' };
  const written = await api.post(`/api/v1/streams/${stream}/events`, { events: [event] }, theirs);
  assert.equal(written.status, 403);
  const sent = { id: 'a1', payload: { amount: 1 } };
  assert.equal(
    (await api.post('/api/v1/commands/account.deposit', sent, theirs, asCore)).status,
    403,
  );
  const key = { 'idempotency-key': 'core|bank|deposit|1' };
  assert.equal((await api.post('/api/v1/commands/account.deposit', sent, theirs, key)).status, 403);
  const document = '/api/v1/documents/banking/account/a1';
  assert.equal((await api.ask(document, theirs)).status, 404);
  assert.equal((await api.ask(document, theirs, { headers: asCore })).status, 403);
});

test('credentials for all tenants must name a tenant', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const sent = { id: 'a1', payload: { amount: 1 } };
  const path = '/api/v1/commands/account.deposit';
  assert.equal((await api.post(path, sent, boss)).status, 400);
  assert.equal((await api.post(path, sent, boss, { 'x-tenant-id': 'core' })).status, 200);
});

test('the health routes need no credentials and report a platform that is not started', async () => {
  await using api = await openApi();
  assert.equal((await api.ask('/health/live')).status, 200);
  assert.equal((await api.ask('/health/ready')).status, 200);
  await api.platform.stop();
  assert.equal((await api.ask('/health/ready')).status, 503);
});

test('metrics need credentials for all tenants', async () => {
  await using api = await openApi({ metrics: async (format) => `${format}\n` });
  assert.equal((await api.ask('/metrics')).status, 401);
  assert.equal((await api.ask('/metrics', await api.token('read', 'core'))).status, 403);
  const response = await api.ask('/metrics', await api.token('read'));
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  assert.equal(await response.text(), 'prometheus\n');
});

test('metrics are in the format that the caller accepts', async () => {
  await using api = await openApi({ metrics: async (format) => `${format}\n` });
  // As Prometheus asks.
  const accept = 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3';
  const response = await api.ask('/metrics', await api.token('read'), { headers: { accept } });
  assert.match(response.headers.get('content-type') ?? '', /^application\/openmetrics-text/);
  assert.equal(await response.text(), 'openmetrics\n');
});

test('the OpenAPI document lists every command, and the reference page every route', async () => {
  await using api = await openApi();
  const document = await body<{ openapi: string; paths: Record<string, object> }>(
    await api.ask('/openapi.json'),
  );
  assert.equal(document.openapi, '3.1.0');
  assert.match(
    JSON.stringify(document.paths['/api/v1/commands/account.deposit']),
    /exclusiveMinimum/,
  );
  const page = await (await api.ask('/docs')).text();
  for (const path of Object.keys(document.paths)) assert.ok(page.includes(path), path);
});

test('checks audience, time and tenant of a JWT with a shared secret', async () => {
  const secret = 'a shared secret of more than 32 bytes';
  await using api = await openApi({ jwt: { secret, audience: 'millrace' } });
  const sign = (claims: object, audience = 'millrace', expires = '1h') =>
    new SignJWT({ tenant: 'core', scope: 'openid millrace:read', ...claims })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('ada')
      .setAudience(audience)
      .setExpirationTime(expires)
      .sign(Buffer.from(secret));
  const ask = async (token: string) => (await api.ask('/api/v1/events', token)).status;
  assert.equal(await ask(await sign({})), 200);
  assert.equal(await ask(await sign({}, 'others')), 401);
  assert.equal(await ask(await sign({}, 'millrace', '-5m')), 401);
  assert.equal(await ask(await sign({ tenant: undefined })), 401);
  assert.equal(await ask(await sign({ scope: 'openid' })), 403);
  const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await sign({})).split('.')[1]}.`;
  assert.equal(await ask(none), 401);
});

for (const algorithm of ['RS256', 'ES256'] as const) {
  test(`verifies JWTs with the published ${algorithm} keys of a provider`, async () => {
    await using provider = await openProvider(algorithm);
    const jwt = { jwksUrl: provider.url, audience: 'millrace', issuer: 'https://id' };
    await using api = await openApi({ jwt });
    const ask = async (token: string) => (await api.ask('/api/v1/events', token)).status;
    assert.equal(await ask(await provider.sign({})), 200);
    assert.equal(await ask(await provider.sign({ iss: 'https://evil' })), 401);
    assert.equal(await ask(await provider.sign({ tenant: 'Not a tenant' })), 401);
    const strange = await openProvider(algorithm);
    await strange[Symbol.asyncDispose]();
    assert.equal(await ask(await strange.sign({})), 401);
    // A public key must not be accepted as a shared secret.
    const forged = new SignJWT({ tenant: '*', roles: ['admin'] })
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .setSubject('boss')
      .setAudience('millrace')
      .setIssuer('https://id')
      .setExpirationTime('1h')
      .sign(Buffer.from(JSON.stringify(provider.key)));
    assert.equal(await ask(await forged), 401);
  });
}

test('accepts JWTs within the allowed clock skew', async () => {
  const secret = 'a shared secret of more than 32 bytes';
  await using api = await openApi({ jwt: { secret, audience: 'millrace', clockSkewSeconds: 60 } });
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const ask = async ({ from, until: end }: { from: number; until: number }) => {
    const token = await new SignJWT({ tenant: 'core', scope: 'read' })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('ada')
      .setAudience('millrace')
      .setNotBefore(nowSeconds + from)
      .setExpirationTime(nowSeconds + end)
      .sign(Buffer.from(secret));
    return (await api.ask('/api/v1/events', token)).status;
  };
  assert.equal(await ask({ from: -90, until: -30 }), 200);
  assert.equal(await ask({ from: 30, until: 90 }), 200);
  assert.equal(await ask({ from: -300, until: -120 }), 401);
  assert.equal(await ask({ from: 120, until: 300 }), 401);
});

test('responds with 503 instead of 401 while the keys of a provider cannot be fetched', async () => {
  await using provider = await openProvider('ES256');
  provider.setAway(true);
  const lines: string[] = [];
  const log = (_fields: object, message: string) => void lines.push(message);
  const observer = { log: { debug() {}, info: log, warn: log, error: log } };
  const jwt = { jwksUrl: provider.url, audience: 'millrace' };
  await using api = await openApi({ jwt, observer });
  const token = await provider.sign({});
  for (const _ of [1, 2]) {
    const response = await api.ask('/api/v1/events', token);
    assert.equal(response.status, 503);
    const { code, retryable } = await body<{ code: string; retryable: boolean }>(response);
    assert.deepEqual([code, retryable], ['IDENTITY_UNAVAILABLE', true]);
  }
  provider.setAway(false);
  assert.equal((await api.ask('/api/v1/events', token)).status, 200);
  assert.deepEqual(lines, [
    'identity provider keys unavailable',
    'identity provider keys available',
  ]);
});

test('responds with 429 only to the caller that exceeds its rate', async () => {
  const one = { perSecond: 0.1, burst: 2 };
  await using api = await openApi({ rateLimits: { known: one, unknown: one } });
  const [a, b] = [await api.token('read', 'core'), await api.token('read', 'core')];
  const statuses = [];
  for (let at = 0; at < 3; at += 1) statuses.push((await api.ask('/api/v1/events', a)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  assert.equal((await api.ask('/api/v1/events', b)).status, 200);
});

test('callers with the same name in two tenants have separate rates', async () => {
  const secret = 'a shared secret of more than 32 bytes';
  const one = { perSecond: 0.1, burst: 1 };
  await using api = await openApi({
    jwt: { secret, audience: 'millrace' },
    rateLimits: { known: one, unknown: one },
  });
  const ask = async (tenant: string) => {
    const token = await new SignJWT({ tenant, scope: 'read' })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('ada')
      .setAudience('millrace')
      .setExpirationTime('1h')
      .sign(Buffer.from(secret));
    return (await api.ask('/api/v1/events', token)).status;
  };
  assert.deepEqual([await ask('core'), await ask('core'), await ask('acme')], [200, 429, 200]);
});

/** An identity provider that publishes a key, signs with it, and can be unavailable. */
async function openProvider(algorithm: 'ES256' | 'RS256') {
  const { publicKey, privateKey } = await generateKeyPair(algorithm);
  const key = { ...(await exportJWK(publicKey)), kid: 'k1', alg: algorithm };
  let isAway = false;
  const server = createServer((_request, response) => {
    if (isAway) response.writeHead(502).end();
    else
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [key] }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    key,
    url: `http://127.0.0.1:${port}/keys`,
    setAway: (away: boolean) => void (isAway = away),
    sign: (claims: Record<string, unknown>) =>
      new SignJWT({ tenant: '*', roles: ['admin'], iss: 'https://id', ...claims })
        .setProtectedHeader({ alg: algorithm, kid: 'k1' })
        .setSubject('boss')
        .setAudience('millrace')
        .setExpirationTime('1h')
        .sign(privateKey),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test('the tenant of a JWT enters the directory, and a tenant that overlaps it is refused', async () => {
  const secret = 'x'.repeat(32);
  await using api = await openApi({ jwt: { secret, audience: 'millrace' } });
  const ask = async (tenant: string) => {
    const token = await new SignJWT({ tenant, scope: 'read' })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('ada')
      .setAudience('millrace')
      .setExpirationTime('1h')
      .sign(Buffer.from(secret));
    return api.ask('/api/v1/events', token);
  };
  assert.equal((await ask('demo-za')).status, 200);
  const refused = await ask('demo');
  assert.equal(refused.status, 403);
  assert.doesNotMatch(await refused.text(), /demo-za/);
  const fields = { name: 'late', scopes: ['read'], tenant: 'demo-za-x' };
  const created = await api.post('/admin/tokens', fields, await api.token('admin'));
  assert.deepEqual(
    [created.status, (await body<{ code: string }>(created)).code],
    [400, 'TENANT_OVERLAP'],
  );
});
