import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApi } from 'millrace/server/api';
import type { slackRequests } from '../slack-requests.ts';
import { workspaceProjection } from '../config.ts';
import { configureWorkspace } from '../config-events.ts';
import { secretKeys, slackRig, token, type SlackRig } from '../testing/slack-rig.ts';

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

type Ask = (
  method: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
) => Promise<Answer>;

interface Served extends AsyncDisposable {
  readonly rig: SlackRig;
  as(token: string): Ask;
  /** Sends a body as it is, as an administrator. */
  put(path: string, body: string): Promise<Response>;
  readonly tokens: { readonly admin: string; readonly append: string; readonly other: string };
}

async function serve(module: Parameters<typeof slackRequests>[0] = {}): Promise<Served> {
  const rig = await slackRig({ module });
  const api = await startApi(rig.platform, { port: 0 });
  const make = async (
    name: string,
    scopes: readonly ('admin' | 'append' | 'read')[],
    tenant: string,
  ) => (await rig.platform.tokens.create({ name, scopes, tenant })).secret;
  const tokens = {
    admin: await make('admin', ['admin'], 'core'),
    append: await make('app', ['append', 'read'], 'core'),
    other: await make('other', ['admin'], 'other'),
  };
  return {
    rig,
    tokens,
    put: (path, body) =>
      fetch(`${api.url}${path}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
        body,
      }),
    as: (bearer) => async (method, path, body, headers) => {
      const response = await fetch(`${api.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        text,
        body: text === '' ? {} : (JSON.parse(text) as Answer['body']),
      };
    },
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]();
      await rig[Symbol.asyncDispose]();
    },
  };
}

const root = '/api/v1/slack';

test('a request is created, read and listed by status', async () => {
  await using served = await serve();
  const ask = served.as(served.tokens.append);
  const message = { workspaceCode: 'acme', data: { text: 'hello' } };
  const key = { 'idempotency-key': 'order-1' };
  const first = await ask('POST', `${root}/requests`, message, key);
  assert.deepEqual([first.status, first.body['status']], [202, 'queued']);
  const id = String(first.body['id']);
  const again = await ask('POST', `${root}/requests`, message, key);
  assert.equal(again.body['id'], id);
  await served.rig.inStatus(id, 'sent', 'failed');
  assert.equal(served.rig.slack.messages.length, 1);
  const found = await ask('GET', `${root}/requests/${id}`);
  assert.deepEqual(
    [found.status, found.body['status'], found.body['channelId']],
    [200, 'sent', 'C0DEFAULT'],
  );
  const idsOf = async (query: string): Promise<unknown> =>
    ((await ask('GET', `${root}/requests${query}`)).body['items'] as { id: string }[]).map(
      (each) => each.id,
    );
  assert.deepEqual(await idsOf('?status=sent'), [id]);
  assert.deepEqual(await idsOf('?status=failed'), []);
  assert.deepEqual(await idsOf(''), [id]);
});

test('a failed request can be changed and is queued again; a sent one cannot', async () => {
  await using served = await serve();
  const ask = served.as(served.tokens.append);
  const message = { workspaceCode: 'acme', templateCode: 'paid', data: {} };
  const id = String((await ask('POST', `${root}/requests`, message)).body['id']);
  await served.rig.inStatus(id, 'failed');
  assert.equal((await ask('POST', `${root}/requests/${id}/queue`, {})).status, 202);
  const data = { order: { id: 'o-1' }, by: 'Ada' };
  await served.rig.inStatus(id, 'failed');
  assert.equal((await ask('PATCH', `${root}/requests/${id}`, { data })).status, 202);
  assert.equal((await served.rig.inStatus(id, 'sent')).ts, served.rig.slack.messages[0]?.ts);
  assert.equal((await ask('PATCH', `${root}/requests/${id}`, { data })).status, 422);
  assert.equal((await ask('POST', `${root}/requests/none/queue`, {})).status, 422);
});

test('configuration is written, read without secrets, listed, tested and removed', async () => {
  await using served = await serve();
  const ask = served.as(served.tokens.admin);
  const put = await ask('PUT', `${root}/workspaces/beta`, {
    name: 'Beta',
    token,
    defaultChannelId: 'C0BETA',
  });
  assert.deepEqual([put.status, put.body['hasToken']], [200, true]);
  // Without a token the stored one stays.
  await ask('PUT', `${root}/workspaces/beta`, { name: 'Beta 2', defaultChannelId: 'C0BETA' });
  const got = await ask('GET', `${root}/workspaces/beta`);
  assert.deepEqual([got.body['name'], got.body['hasToken']], ['Beta 2', true]);
  const tried = await ask('POST', `${root}/workspaces/beta/test`);
  assert.deepEqual(tried.body, { ok: true, team: 'Fake' });
  await ask('PUT', `${root}/apps/bot`, { name: 'Bot', signingSecret: 'shhh-4711' });
  await ask('PUT', `${root}/channels/c`, { channelId: 'C0C' });
  await ask('PUT', `${root}/templates/t`, { text: 'Hi {{name}}' });
  const all = await Promise.all(
    ['workspaces', 'workspaces/beta', 'apps', 'apps/bot', 'channels', 'templates/t'].map((path) =>
      ask('GET', `${root}/${path}`),
    ),
  );
  for (const { status, text } of [put, got, tried, ...all]) {
    assert.equal(status, 200);
    assert.doesNotMatch(text, /xoxb|shhh|sealed/);
  }
  assert.equal((await ask('DELETE', `${root}/channels/c`)).status, 204);
  assert.equal((await ask('GET', `${root}/channels/c`)).status, 404);
  assert.equal((await ask('PUT', `${root}/workspaces/new`, { name: 'New' })).status, 400);
  assert.equal((await ask('PUT', `${root}/templates/bad`, { text: '{{#if}}' })).status, 422);
  assert.deepEqual((await ask('POST', `${root}/secrets/reseal`)).body, { resealed: 0 });
});

test('a token reads and changes only its tenant, within its scopes', async () => {
  await using served = await serve();
  const [other, app] = [served.as(served.tokens.other), served.as(served.tokens.append)];
  assert.equal((await other('GET', `${root}/workspaces/acme`)).status, 404);
  assert.equal(
    (await other('GET', `${root}/workspaces`, undefined, { 'x-tenant-id': 'core' })).status,
    403,
  );
  assert.deepEqual((await other('GET', `${root}/workspaces`)).body['items'], []);
  assert.equal((await app('PUT', `${root}/channels/c`, { channelId: 'C0C' })).status, 403);
  assert.equal((await app('POST', `${root}/requests`, { workspaceCode: 'acme' })).status, 400);
});

test('the routes are in the OpenAPI document', async () => {
  await using served = await serve();
  const { body } = await served.as(served.tokens.admin)('GET', '/openapi.json');
  const paths = Object.keys(body['paths'] as object);
  for (const path of [
    'requests',
    'requests/{id}',
    'workspaces/{code}',
    'templates',
    'secrets/reseal',
  ]) {
    assert.ok(paths.includes(`${root}/${path}`), path);
  }
});

test('an unreadable secret is named, and the other secrets are encrypted again', async () => {
  const young = { id: 'k2', key: Buffer.alloc(32, 9).toString('base64') };
  await using served = await serve({ secretKeys: [young, ...secretKeys] });
  const { platform } = served.rig;
  const ask = served.as(served.tokens.admin);
  await platform.handle({
    tenant: 'core',
    id: 'aaa',
    command: configureWorkspace({
      name: 'A',
      token: `sealed.v1.k9.${'a'.repeat(16)}.${'b'.repeat(40)}`,
      defaultChannelId: 'C0A',
    }),
  });
  await platform.waitFor(workspaceProjection, await platform.engines.store.head());
  const resealed = await ask('POST', `${root}/secrets/reseal`);
  assert.equal(resealed.status, 422);
  assert.match(resealed.text, /workspace aaa/);
  assert.match(resealed.text, /"resealed":1/);
  const tried = await ask('POST', `${root}/workspaces/aaa/test`);
  assert.deepEqual([tried.status, /workspace aaa/.test(tried.text)], [422, true]);
});

test('without an encryption key, a request with a secret is rejected with the missing setting', async () => {
  await using served = await serve({ secretKeys: [] });
  const ask = served.as(served.tokens.admin);
  for (const { status, text } of [
    await ask('PUT', `${root}/workspaces/w1`, { name: 'Shop', token }),
    await ask('POST', `${root}/secrets/reseal`),
  ]) {
    assert.deepEqual([status, /secret-keys-missing/.test(text)], [422, true], text);
  }
});

test('a template with deeply nested blocks is a bad request', async () => {
  await using served = await serve();
  const blocks = `${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}`;
  const response = await served.put(`${root}/templates/t`, `{"text":"x","blocks":${blocks}}`);
  assert.equal(response.status, 400);
  assert.match(await response.text(), /REQUEST_INVALID.*nested too deeply/);
});
