// ntfy's API over a platform: e-mail through the outbox, platform tokens, and poll requests to an upstream server.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createPlatform, type Platform } from '../../platform/create-platform.ts';
import { defineModule, type PlatformModule } from '../../platform/modules/platform-module.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { poll, publish, send } from '../../testing/support/topics/ntfy-case.ts';
import { startApi } from '../api/start-api.ts';
import { openNtfy } from './open-ntfy.ts';
import { startNtfyServer } from './start-ntfy-server.ts';

/** A platform over a temporary folder; the stack disposes both. */
async function openPlatform(
  opened: AsyncDisposableStack,
  modules: readonly PlatformModule[] = [],
): Promise<{ readonly folder: string; readonly platform: Platform }> {
  const folder = await createTempFolder('notify');
  opened.defer(() => removeTempFolder(folder));
  const engines = { store: `sqlite:${folder}/events.db` };
  const platform = opened.use(await createPlatform({ engines, modules }));
  await platform.start();
  return { folder, platform };
}

async function codeOf(answer: Response): Promise<number> {
  const { code = answer.status } = (await answer.json()) as { readonly code?: number };
  return code;
}

test('an e-mail goes through the outbox if there is a destination for it', async () => {
  await using opened = new AsyncDisposableStack();
  const sent = Promise.withResolvers<Readonly<Record<string, unknown>>>();
  const mail = defineModule({
    name: 'mail',
    destinations: {
      email: async ({ payload }) => {
        sent.resolve(payload);
        return { kind: 'sent' };
      },
    },
  });
  const { folder, platform } = await openPlatform(opened, [mail]);
  const ntfy = opened.use(await openNtfy(platform, { cwd: folder, url: () => undefined }));
  const server = opened.use(await startNtfyServer(ntfy));
  const email = { Email: 'ann@shop.example', Title: 'Disk' };
  assert.equal(await codeOf(await send(server, 'alerts', { headers: email })), 40053);
  const { secret } = await platform.tokens.create({ name: 'shop', scopes: ['append'] });
  const headers = { ...email, Authorization: `Bearer ${secret}` };
  const message = await publish(server, 'alerts', { headers, body: 'full' });
  const payload = await sent.promise;
  assert.deepEqual(
    [payload['to'], payload['id'], payload['title'], payload['message']],
    ['ann@shop.example', message.id, 'Disk', 'full'],
  );
});

test('platform tokens are allowed by their scopes, on the port of the API', async () => {
  await using opened = new AsyncDisposableStack();
  const { folder, platform } = await openPlatform(opened);
  let url: string | undefined;
  // As on a public address: without a rule nothing is allowed.
  const ntfy = opened.use(
    await openNtfy(platform, { host: '0.0.0.0', cwd: folder, url: () => url }),
  );
  const api = opened.use(await startApi(platform, { port: 0, fallbackHandler: ntfy }));
  ({ url } = api);
  const bearer = async (scopes: readonly ('read' | 'append' | 'admin')[], tenant?: string) => {
    const name = `${scopes.join('-')}${tenant ?? ''}`;
    const wanted = { name, scopes, ...(tenant === undefined ? {} : { tenant }) };
    return { Authorization: `Bearer ${(await platform.tokens.create(wanted)).secret}` };
  };
  const write = async (headers: Readonly<Record<string, string>>): Promise<number> =>
    codeOf(await send(api, 'alerts', { headers, body: 'x' }));
  assert.equal(await write({}), 40301);
  assert.equal(await write(await bearer(['read'])), 40301);
  assert.equal(await write(await bearer(['append'])), 200);
  assert.equal(await write(await bearer(['admin'])), 200);
  assert.equal(await write(await bearer(['append'], 'core')), 40101);
  assert.equal((await poll(api, 'alerts', '', await bearer(['read', 'append']))).length, 2);
  // The routes of the API still work.
  assert.equal((await fetch(`${api.url}/health/live`)).status, 200);
  assert.equal((await fetch(`${api.url}/docs`)).status, 200);
  assert.equal(
    (await fetch(`${api.url}/nothing`)).headers.get('content-type'),
    'application/problem+json',
  );
  assert.equal((await fetch(`${api.url}/api`, { method: 'POST', body: 'x' })).status, 404);
});

test('each message causes a poll request to the upstream server', async () => {
  const heard = Promise.withResolvers<readonly unknown[]>();
  const upstream = createServer((request, response) => {
    heard.resolve([
      request.method,
      request.url,
      request.headers['x-poll-id'],
      request.headers.authorization,
    ]);
    response.end();
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo;
  await using opened = new AsyncDisposableStack();
  opened.defer(() => void upstream.close());
  const { folder, platform } = await openPlatform(opened);
  const settings = {
    baseUrl: 'https://push.example',
    defaultAccess: 'read-write' as const,
    upstreamUrl: `http://127.0.0.1:${port}`,
    upstreamToken: 'tk_x',
  };
  const ntfy = opened.use(
    await openNtfy(platform, { settings, cwd: folder, url: () => undefined }),
  );
  const server = opened.use(await startNtfyServer(ntfy));
  const { id } = await publish(server, 'alerts', { body: 'secret' });
  const hash = createHash('sha256').update('https://push.example/alerts').digest('hex');
  assert.deepEqual(await heard.promise, ['POST', `/${hash}`, id, 'Bearer tk_x']);
});

test('a reader is disconnected when its platform token is revoked', async () => {
  await using opened = new AsyncDisposableStack();
  const { folder, platform } = await openPlatform(opened);
  const ntfy = opened.use(
    await openNtfy(platform, { host: '0.0.0.0', cwd: folder, url: () => undefined }),
  );
  const server = opened.use(await startNtfyServer(ntfy));
  const reader = async (name: string): Promise<{ readonly text: Promise<string> }> => {
    const { secret } = await platform.tokens.create({ name, scopes: ['read', 'append'] });
    const headers = { Authorization: `Bearer ${secret}` };
    const answer = await send(server, 'alerts', { method: 'GET', path: '/{t}/raw', headers });
    assert.equal(answer.status, 200);
    return { text: answer.text().catch(String) };
  };
  const { secret } = await platform.tokens.create({ name: 'writer', scopes: ['append'] });
  const headers = { Authorization: `Bearer ${secret}` };
  const gone = await reader('gone');
  const stays = await reader('stays');
  await publish(server, 'alerts', { headers, body: 'one' });
  await platform.tokens.revoke('gone');
  assert.match(await gone.text, /one\n$/);
  await publish(server, 'alerts', { headers, body: 'two' });
  await platform.tokens.revoke('stays');
  assert.match(await stays.text, /one\ntwo\n$/);
});
