// Slow: thousands of generated messages.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { WebSocket } from 'ws';
import { openApi, until } from '../../testing/support/server/api-rig.ts';
import {
  assertOwn,
  fuzzRuns,
  openForFuzz,
  poolOf,
} from '../../testing/support/server/fuzz-cases.ts';
import { valueFor, type SchemaPart } from '../../testing/support/server/fuzz-rig.ts';

test('a WebSocket survives any message, and reveals no data of other tenants', async () => {
  await using api = await openForFuzz();
  const token = await api.token('admin', 'core');
  const pool = await poolOf(api);
  const described = api.server.routes.find(({ path }) => path === '/ws')?.responses[101]?.schema;
  const { toServer } = (described as SchemaPart).properties ?? {};
  const messages = (toServer?.anyOf ?? []).map((schema) => valueFor(schema, pool));
  assert.ok(JSON.stringify(toServer).includes('"bell.hear"') && messages.length > 5);
  const raw = fc.constantFrom('', '{', '[]', 'null', '1', '"x"', '{"type":{}}', '['.repeat(20_000));
  const some = fc.oneof(
    ...messages.map((each) => each.map((value) => JSON.stringify(value) ?? '')),
    raw,
  );
  const received: string[] = [];
  const open = async (): Promise<WebSocket> => {
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(`${api.server.url.replace('http', 'ws')}/ws`, { headers });
    socket.on('message', (data: Buffer) => received.push(data.toString()));
    socket.on('error', () => {});
    await once(socket, 'open');
    return socket;
  };
  let socket = await open();
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(some, async (text) => {
      if (sent % 100 === 99) {
        socket.terminate();
        socket = await open();
      }
      sent += 1;
      received.length = 0;
      socket.send(text);
      // The response to this message follows the responses to all earlier ones.
      const last = `last ${sent}`;
      socket.send(JSON.stringify({ type: 'unsubscribe', id: last }));
      await until(() => received.some((each) => each.includes(`"${last}"`)));
      assert.equal(socket.readyState, WebSocket.OPEN);
      for (const each of received) {
        assertOwn(each, `${text.slice(0, 300)}: ${each.slice(0, 500)}`);
        assert.doesNotMatch(each, /"status":500/, text.slice(0, 300));
      }
    }),
    { seed: 9, numRuns: fuzzRuns / 2, endOnFailure: true },
  );
  socket.terminate();
  await until(() => api.server.connections === 0);
});

test('invalid frames close their WebSocket and nothing else', async () => {
  await using api = await openApi();
  const token = await api.token('read', 'core');
  const { port } = api.server;
  const handshake = [
    'GET /ws HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'upgrade: websocket',
    'connection: upgrade',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}`,
    `authorization: Bearer ${token}`,
    '',
    '',
  ].join('\r\n');
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(handshake);
      await once(socket, 'data');
      socket.resume();
      socket.end(bytes);
      await once(socket, 'close');
    }),
    { seed: 10, numRuns: Math.min(300, fuzzRuns / 10) },
  );
  await until(() => api.server.connections === 0);
  assert.equal((await api.ask('/health/live')).status, 200);
});
