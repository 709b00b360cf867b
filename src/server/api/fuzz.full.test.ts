// Slow: thousands of generated requests.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openApi } from '../../testing/support/server/api-rig.ts';
import { assertOwn, fuzz, fuzzRuns, openForFuzz } from '../../testing/support/server/fuzz-cases.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('every route survives any input of a tenant admin, and reveals no data of other tenants', async () => {
  await using api = await openForFuzz();
  const token = await api.token('admin', 'core');
  const statuses = await fuzz(api, { token, seed: 1, isBound: true });
  for (const status of [200, 201, 202, 400, 403, 404, 405, 409, 413, 415]) {
    assert.ok(statuses.has(status), `the fuzz never got to ${status}`);
  }
  // The data of the other tenant exists.
  const boss = await api.token('admin');
  const theirs = await (await api.ask('/admin/dlq?tenant=acme&status=all', boss)).text();
  assert.throws(() => assertOwn(theirs, ''));
});

test('every route survives any input of an admin of all tenants', async () => {
  await using api = await openForFuzz();
  await fuzz(api, { token: await api.token('admin'), seed: 2, runs: fuzzRuns / 2, isBound: false });
});

test('every route survives any input without credentials or with invalid ones', async () => {
  await using api = await openForFuzz();
  const runs = fuzzRuns / 10;
  await fuzz(api, { token: undefined, seed: 3, runs, isBound: true });
  await fuzz(api, { token: 'mr_x', seed: 4, runs, isBound: true });
  await fuzz(api, { token: 'a.b.c', seed: 5, runs, isBound: true });
});

test('memory does not grow with invalid requests', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-fuzz-'));
  try {
    await using api = await openForFuzz({ store: `sqlite:${folder}/events.db` });
    const token = await api.token('admin', 'core');
    const used = async (seed: number): Promise<number> => {
      await fuzz(api, { token, seed, runs: fuzzRuns / 7, isBound: true });
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    await used(6);
    const [before, after] = [await used(7), await used(8)];
    const grown = (after - before) / 1_048_576;
    assert.ok(grown < 20, `the heap grew by ${grown.toFixed(1)} MiB`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

const halves = [
  '',
  'G',
  'GET',
  'GET / HTTP/1.1',
  'GET / HTTP/1.1\r\n',
  'GET /health/live HTTP/1.1\r\nhost: localhost\r\n',
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"name":',
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"na',
  'GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n',
];
const garbage = [
  'GET / HTTP/9.9\r\n\r\n',
  'GET\0/ HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'DANCE / HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'GET http://evil.example/admin/tokens HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'GET //admin//tokens HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'GET /admin/%2e%2e/tokens HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n',
  `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
  `GET / HTTP/1.1\r\nhost: localhost\r\n${'a: b\r\n'.repeat(5_000)}\r\n`,
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabc',
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n',
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nabc',
  'POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  'GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
];

test('incomplete requests, slow requests and other protocols cause no 500', async () => {
  await using api = await openApi({ limits: { receiveMsMax: 300 } });
  const token = await api.token('admin');
  const { port } = api.server;
  const talk = async (text: string, more = ''): Promise<string> => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    let response = '';
    socket.on('data', (data) => (response += data.toString('latin1')));
    socket.write(text, 'latin1');
    socket.write(more);
    await once(socket, 'close');
    return response;
  };
  const half = `POST /admin/tokens HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n`;
  const late = await Promise.all(
    [...halves, `${half}content-length: 100\r\n\r\n{`].map((text) => talk(text)),
  );
  for (const response of late) assert.match(response, /^HTTP\/1\.1 40[18]/);
  // Complete requests may keep the connection alive; a broken one closes it.
  const rejected = await Promise.all(garbage.map((text) => talk(text, '\r\n\0\r\n\r\n')));
  for (const response of rejected) assert.match(response, /^HTTP\/1\.1 4\d\d/);
  assert.equal((await api.ask('/health/live')).status, 200);
});

test('an upgrade to an unknown protocol is ignored', async () => {
  await using api = await openApi();
  const socket = connect(api.server.port, '127.0.0.1');
  socket.write(
    'GET /health/live HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n',
  );
  const [data] = (await once(socket, 'data')) as [Buffer];
  assert.match(data.toString(), /^HTTP\/1\.1 200/);
  socket.destroy();
});
