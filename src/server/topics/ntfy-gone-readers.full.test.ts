// Readers that disconnect at any moment or read too slowly leave no resources behind.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '../../foundation/clock.ts';
import { openTopics, type Topics } from '../../topics/topics.ts';
import type { NotifyLimits } from '../../topics/visitor-limits.ts';
import { openRole } from '../../platform/engines/open-engines.ts';
import { createNtfyHandler } from './ntfy-handler.ts';
import { startNtfyServer } from './start-ntfy-server.ts';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { publish } from '../../testing/support/topics/ntfy-case.ts';

const subscriptionsMax = 3;

async function served(
  run: (server: { readonly url: string; readonly port: number }, topics: Topics) => Promise<void>,
  limits: Partial<NotifyLimits> = {},
): Promise<void> {
  const folder = await createTempFolder('notify');
  await using opened = new AsyncDisposableStack();
  opened.defer(() => removeTempFolder(folder));
  const bus = opened.use(await openRole(`sqlite:${folder}/bus.db`, 'bus'));
  const topics = opened.use(await openTopics(bus, { limits: { subscriptionsMax, ...limits } }));
  const handler = opened.use(createNtfyHandler(topics, { exemptHosts: ['127.0.0.1'] }));
  const server = await startNtfyServer(handler);
  try {
    await run(server, topics);
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = systemClock.now() + 20_000;
  while (!(await holds())) {
    if (systemClock.now() > endMs) assert.fail(`did not happen within 20 s: ${what}`);
    await systemClock.sleep(2);
  }
}

/** Opens as many streams as one visitor may have, which fails if an ended stream still counts. */
async function canOpenAllStreams(server: { readonly url: string }): Promise<void> {
  const over = new AbortController();
  await until('all streams can be opened', async () => {
    const { signal } = over;
    const open = (): Promise<Response> => fetch(`${server.url}/alerts/json`, { signal });
    const answers = await Promise.all(Array.from({ length: subscriptionsMax }, open));
    if (answers.every(({ ok }) => ok)) return true;
    for (const { body } of answers) await body?.cancel();
    return false;
  });
  over.abort();
}

const upgrade = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];
const requests = {
  'a stream': 'GET /alerts/json?since=all HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'a WebSocket': `GET /alerts/ws?since=all HTTP/1.1\r\nHost: localhost\r\n${upgrade.join('\r\n')}\r\n\r\n`,
};

for (const [what, request] of Object.entries(requests)) {
  test(`${what} that disconnects while it is opened leaves no resources behind`, async () => {
    await served(async (server, topics) => {
      await publish(server, 'alerts', { body: 'kept' });
      for (let round = 0; round < 60; round += 1) {
        const socket = await connected(server.port);
        socket.write(request);
        // Before the server has read the request, while it handles it, and after the response has begun.
        if (round % 3 === 1) await new Promise((resolve) => setImmediate(resolve));
        if (round % 3 === 2) await once(socket, 'data');
        if (round % 2 === 0) socket.resetAndDestroy();
        else socket.destroy();
      }
      await until('there are no readers', () => topics.readers === 0);
      await canOpenAllStreams(server);
    });
  });
}

for (const [what, request] of Object.entries(requests)) {
  test(`${what} that leaves more than 4 MB unread is disconnected, and others are not`, async () => {
    const body = 'x'.repeat(500_000);
    await served(
      async (server, topics) => {
        const slow = await connected(server.port);
        const fast = await connected(server.port);
        let received = 0;
        fast.on('data', (chunk: Buffer) => (received += chunk.length));
        slow.write(request);
        fast.write(request);
        await until('both read', () => topics.readers === 2);
        let sent = 0;
        // The buffers of the kernel take some megabytes as well.
        while (topics.readers === 2 && sent < 200) {
          await publish(server, 'alerts', { body });
          sent += 1;
        }
        assert.equal(topics.readers, 1);
        await until('the other reader has everything', () => received > sent * body.length);
        fast.destroy();
        slow.destroy();
        await until('there are no readers', () => topics.readers === 0);
      },
      { messageBytesMax: 600_000 },
    );
  });
}

test('a stream pipelined after another stream ends with their connection', async () => {
  await served(async (server, topics) => {
    for (let round = 0; round < subscriptionsMax; round += 1) {
      const socket = await connected(server.port);
      socket.write(requests['a stream'] + requests['a stream']);
      await once(socket, 'data');
      socket.destroy();
      await until('there are no readers', () => topics.readers === 0);
    }
    await canOpenAllStreams(server);
  });
});

test('a rejected WebSocket leaves no resources behind', async () => {
  await served(async (server) => {
    for (let round = 0; round < subscriptionsMax; round += 1) {
      const socket = await connected(server.port);
      socket.resume().write(requests['a WebSocket'].replace('Version: 13', 'Version: 1'));
      await once(socket, 'close', { signal: AbortSignal.timeout(20_000) });
    }
    await canOpenAllStreams(server);
  });
});
