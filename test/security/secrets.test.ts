// Secrets of modules, and a server whose files are gone.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { slackRequests } from '../../modules/slack-requests/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { createPlatform, createSecretHider, type SecretHider } from '../../src/platform/index.ts';
import { payloadMasker } from '../../src/platform/modules/hide-secrets.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { KurrentDBClient, jsonEvent } from '@kurrent/kurrentdb-client';
import { until } from '../../src/testing/support/server/api-rig.ts';

test('no route shows the sealed Slack token, not even to an administrator', async () => {
  const key = { id: 'k1', key: Buffer.alloc(32, 1).toString('base64') };
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [slackRequests({ secretKeys: [key] })],
  });
  await platform.start();
  await using api = await startApi(platform, { port: 0 });
  const { secret } = await platform.tokens.create({ name: 'ops', scopes: ['admin'] });
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${api.url}/api/v1/${path}`, {
      ...init,
      headers: {
        authorization: `Bearer ${secret}`,
        'x-tenant-id': 'core',
        'content-type': 'application/json',
      },
    });
  const body = JSON.stringify({ name: 'Shop', token: 'xoxb-1-2-abc' });
  assert.ok((await ask('slack/workspaces/w1', { method: 'PUT', body })).ok);
  const [stored] = await platform.engines.store.readAll().toArray();
  assert.ok(stored);
  const { token } = stored.payload as { readonly token: string };
  assert.ok(token.length > 20);
  const { bc = '', name = '' } =
    platform.modules.aggregates.get('notificationSlack.slackWorkspace.v1') ?? {};
  const family = `documents/${bc}/${name}`;
  await until(async () => (await ask(`${family}/w1`)).status === 200);
  const { stream } = stored;
  for (const path of ['events', `streams/${stream}/events`, family, `${family}/w1`]) {
    const text = await (await ask(path)).text();
    assert.deepEqual([text.includes(token), text.includes('[secret]')], [false, true], path);
  }
  const feed = await ask('events/subscribe');
  let seen = '';
  for await (const chunk of feed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    seen += chunk;
    if (seen.includes('caughtUp')) break;
  }
  assert.deepEqual([seen.includes(token), seen.includes('[secret]')], [false, true]);
});

const vaultSecrets = {
  events: new Map<string, readonly string[]>(),
  documents: new Map([['bank.vault', ['pin']]]),
};
for (const { what, hider, seen } of [
  {
    what: 'secret',
    hider: createSecretHider({ secrets: vaultSecrets }),
    seen: { pin: '[secret]', door: 1 },
  },
  { what: 'masked payload', hider: payloadMasker, seen: { pin: '•••', door: '•••' } },
]) {
  test(`a gRPC reader without admin gets no ${what}, also not in the bytes that a client sent`, () =>
    assertHidden(hider, seen));
}

async function assertHidden(hider: SecretHider, seen: object): Promise<void> {
  await using db = openMemory(kurrentStoreOptions);
  const scopes: ('admin' | 'read')[] = ['admin'];
  await using server = await startKurrentServer(db.store, {
    port: 0,
    authenticate: () => ({ scopes }),
    hider,
  });
  const client = KurrentDBClient.connectionString(`${server.url}&discoveryInterval=1`);
  const sent = jsonEvent({ type: 'vault.locked.v1', data: { pin: '4711', door: 1 } });
  await client.appendToStream('vault-1', sent);
  const read = async (): Promise<readonly unknown[]> =>
    (await Array.fromAsync(client.readStream('vault-1'))).map(({ event }) => event?.data);
  assert.deepEqual(await read(), [{ pin: '4711', door: 1 }]);
  scopes[0] = 'read';
  assert.deepEqual(await read(), [seen]);
  await client.dispose();
}

test('a server whose database file was removed is not ready, and acknowledges and returns nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-gone-'));
  await using platform = await createPlatform({
    engines: { store: `sqlite:${join(folder, 'events.db')}` },
  });
  await platform.start();
  await using api = await startApi(platform, { port: 0 });
  const ready = async () => {
    const response = await fetch(`${api.url}/health/ready`);
    return [response.status, (await response.text()).includes('removed or replaced')];
  };
  const { secret } = await platform.tokens.create({
    name: 'all',
    scopes: ['admin'],
    tenant: 'core',
  });
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const events = `${api.url}/api/v1/streams/shop.order.v1-core-o1/events`;
  const body = JSON.stringify({ events: [{ type: 'order.placed.v1', payload: {} }] });
  const statuses = async (): Promise<readonly number[]> => {
    const responses = [
      await fetch(events, { method: 'POST', headers, body }),
      await fetch(events, { headers }),
      await fetch(`${api.url}/api/v1/events`, { headers }),
    ];
    await Promise.all(responses.map((response) => response.text()));
    return responses.map(({ status }) => status);
  };
  assert.deepEqual(await ready(), [200, false]);
  assert.deepEqual(await statuses(), [201, 200, 200]);
  await rm(folder, { recursive: true, force: true });
  assert.deepEqual(await ready(), [503, true]);
  assert.deepEqual(await statuses(), [503, 503, 503]);
});
