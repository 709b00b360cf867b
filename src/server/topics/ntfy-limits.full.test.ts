// Limits of visitors, and how a stopped server ends its readers.

import assert from 'node:assert/strict';
import { Server } from 'node:http';
import { test } from 'node:test';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import {
  newTopic,
  publish,
  send,
  type CaseServer,
} from '../../testing/support/topics/ntfy-case.ts';
import { startOurNtfy, type OurNtfy } from '../../testing/support/topics/our-ntfy.ts';

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

test('a visitor with too many requests is rejected, an exempt visitor is not', async () => {
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

test('a visitor is rejected after too many wrong passwords', async () => {
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
