// Limits of visitors, e-mail through the outbox, poll requests to an upstream server, platform tokens, and how a
// stopped server ends its readers.

import assert from 'node:assert/strict';
import { createServer, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createHash } from 'node:crypto';
import { createPlatform } from '../../src/platform/create-platform.ts';
import { defineModule } from '../../src/platform/modules/platform-module.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import { openNtfy } from '../../src/server/topics/open-ntfy.ts';
import { startNtfyServer } from '../../src/server/topics/start-ntfy-server.ts';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';
import { newTopic, poll, publish, send, type CaseServer } from './ntfy-case.ts';
import { openPlatform } from './open-platform.ts';
import { startOurNtfy, type OurNtfy } from './our-ntfy.ts';

type Limits = NonNullable<Parameters<typeof startOurNtfy>[0]['limits']>;

async function limited(
  limits: Limits,
  run: (server: OurNtfy) => Promise<void>,
  isExempt = false,
): Promise<void> {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  await run(opened.use(await startOurNtfy({ folder, limits, isExempt })));
}

async function codeOf(answer: Response): Promise<number> {
  const { code = answer.status } = (await answer.json()) as { readonly code?: number };
  return code;
}

async function codes(count: number, ask: () => Promise<Response>): Promise<readonly number[]> {
  const seen: number[] = [];
  for (let at = 0; at < count; at += 1) seen.push(await codeOf(await ask()));
  return seen;
}

test('a visitor with too many requests is refused, an exempt visitor is not', async () => {
  const topic = newTopic();
  const ask = (server: CaseServer) => () => send(server, topic, { body: 'x' });
  await limited({ requestsBurst: 2 }, async (server) => {
    assert.deepEqual(await codes(4, ask(server)), [200, 200, 42901, 42901]);
  });
  const exempt = async (server: CaseServer): Promise<void> => {
    assert.deepEqual(await codes(4, ask(server)), [200, 200, 200, 200]);
  };
  await limited({ requestsBurst: 2, messagesPerDay: 1 }, exempt, true);
});

test('messages per day, new topics and topics of the server are limited', async () => {
  await limited({ messagesPerDay: 1 }, async (server) => {
    assert.deepEqual(await codes(2, () => send(server, 'a', { body: 'x' })), [200, 42908]);
  });
  await limited({ newTopicsBurst: 2 }, async (server) => {
    const ask = (): Promise<Response> => send(server, newTopic(), { body: 'x' });
    assert.deepEqual(await codes(3, ask), [200, 200, 42911]);
  });
  await limited({ topicsMax: 1 }, async (server) => {
    const ask = (): Promise<Response> => send(server, newTopic(), { body: 'x' });
    assert.deepEqual(await codes(2, ask), [200, 42904]);
  });
});

test('streams of a visitor are limited, and an ended stream no longer counts', async () => {
  await limited({ subscriptionsMax: 1 }, async (server) => {
    const over = new AbortController();
    const path = `${server.url}/${newTopic()}/json`;
    const first = await fetch(path, { signal: over.signal });
    assert.equal(first.status, 200);
    assert.equal(await codeOf(await fetch(path)), 42903);
    over.abort();
    let again = 42903;
    while (again === 42903) again = await codeOf(await fetch(`${path}?poll=1&since=bad`));
    assert.equal(again, 40008);
  });
});

test('a visitor is refused after too many wrong passwords', async () => {
  await limited({ authFailuresBurst: 3, requestsBurst: 1_000 }, async (server) => {
    const headers = { Authorization: `Basic ${Buffer.from('ben:no').toString('base64')}` };
    const ask = (): Promise<Response> => send(server, 'a', { headers, body: 'x' });
    assert.deepEqual(await codes(5, ask), [40101, 40101, 40101, 42909, 42909]);
    assert.equal((await send(server, 'a', { body: 'x' })).status, 200);
  });
});

test('files count against the quota and the daily bytes of their visitor', async () => {
  const file = { body: new Uint8Array(600_000) };
  await limited({ attachmentBytesPerVisitor: 1_000_000 }, async (server) => {
    assert.deepEqual(await codes(2, () => send(server, 'a', file)), [200, 41301]);
  });
  await limited({ attachmentBytesPerDay: 1_000_000 }, async (server) => {
    const { attachment } = await publish(server, 'a', file);
    assert.equal(await codeOf(await fetch(attachment?.url ?? '')), 42905);
  });
});

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
  const ntfy = opened.use(
    await openNtfy(platform, { isLoopback: true, cwd: folder, url: () => undefined }),
  );
  const server = opened.use(await startNtfyServer(ntfy));
  const headers = { Email: 'ann@shop.example', Title: 'Disk' };
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
    await openNtfy(platform, { isLoopback: false, cwd: folder, url: () => url }),
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
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  opened.defer(() => void upstream.close());
  const platform = opened.use(
    await createPlatform({ engines: { store: `sqlite:${folder}/events.db` } }),
  );
  const settings = {
    baseUrl: 'https://push.example',
    upstreamUrl: `http://127.0.0.1:${port}`,
    upstreamToken: 'tk_x',
  };
  const ntfy = opened.use(
    await openNtfy(platform, { settings, isLoopback: true, cwd: folder, url: () => undefined }),
  );
  const server = opened.use(await startNtfyServer(ntfy));
  const { id } = await publish(server, 'alerts', { body: 'secret' });
  const hash = createHash('sha256').update('https://push.example/alerts').digest('hex');
  assert.deepEqual(await heard.promise, ['POST', `/${hash}`, id, 'Bearer tk_x']);
});

test(
  'a server that stops ends its readers in an orderly way',
  { timeout: 120_000 },
  async (context) => {
    const folder = await createTempFolder('notify');
    const server = await startOurNtfy({ folder });
    const answer = await fetch(`${server.url}/a/json`);
    const reading = answer.text();
    // The server waits until all connections have ended, and closes none itself.
    context.mock.method(Server.prototype, 'closeAllConnections', () => undefined);
    await server[Symbol.asyncDispose]();
    assert.match(await reading, /"event":"open"/);
    await removeTempFolder(folder);
  },
);
