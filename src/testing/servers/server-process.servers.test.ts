import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { converse } from './converse.ts';
import { startRedis } from './redis-server.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

const ping = [{ send: 'PING\r\n', expect: /^\+PONG\r\n/ }];

/** A folder in which `redis-server` is this shell script. */
async function fakeRedis(script: string): Promise<AsyncDisposable & { readonly folder: string }> {
  const folder = await createTempFolder('test');
  await writeFile(join(folder, 'redis-server'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { folder, [Symbol.asyncDispose]: () => removeTempFolder(folder) };
}

test('a paused server keeps its connections and responds only when resumed', async () => {
  await using server = await startRedis();
  server.pause();
  await assert.rejects(converse(server.port, ping, 200), /no reply/);
  server.resume();
  await converse(server.port, ping);
});

test('a paused server can be stopped and killed', async () => {
  await using server = await startRedis();
  server.pause();
  await server.stop();
  assert.equal(server.pid, undefined);
  await server.start();
  server.pause();
  await server.kill();
  assert.equal(server.pid, undefined);
  assert.throws(() => server.pause(), { code: 'SERVER_UNAVAILABLE' });
});

test('a server that was killed from outside can be started again', async (t) => {
  await using server = await startRedis();
  assert.ok(server.pid !== undefined);
  process.kill(server.pid, 'SIGKILL');
  await t.waitFor(() => assert.equal(server.pid, undefined), { interval: 5, timeout: 60_000 });
  await server.start();
  await converse(server.port, ping);
});

test('starts, stops and kills that race each other leave a server that can be started', async () => {
  await using server = await startRedis();
  for (let round = 0; round < 10; round += 1) {
    const calls = [server.kill(), server.start(), server.stop(), server.start(), server.kill()];
    const outcomes = await Promise.allSettled(calls);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.ok(isCutShort(outcome.reason), outcome.reason);
    }
  }
  await server.start();
  await converse(server.port, ping);
});

function isCutShort(error: unknown): boolean {
  return (
    hasCode(error, 'ABORTED') ||
    hasCode(error, 'LIFECYCLE_STOPPED') ||
    hasCode(error, 'SERVER_UNAVAILABLE')
  );
}

test('disposing a server releases its port, removes its folder, keeps its log and prevents a restart', async () => {
  const server = await startRedis();
  assert.ok(existsSync(server.folder));
  await server[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  assert.equal(existsSync(server.folder), false);
  await assert.rejects(converse(server.port, ping), { code: 'ECONNREFUSED' });
  assert.match(server.log(), /Ready to accept connections/);
  await assert.rejects(server.start(), { code: 'SERVER_UNAVAILABLE' });
});

test('the error for a server that is not ready in time contains its last lines', async () => {
  await using fake = await fakeRedis('echo still thinking; exec sleep 1000');
  const start = startRedis({ programFolders: [fake.folder], startTimeoutMs: 300 });
  await assert.rejects(start, {
    code: 'SERVER_UNAVAILABLE',
    message: /did not come up within 300 ms:\nstill thinking/,
  });
});

test('the error for a server that exits during the start contains its last lines', async () => {
  await using fake = await fakeRedis('echo no memory left; exit 1');
  await assert.rejects(startRedis({ programFolders: [fake.folder] }), {
    code: 'SERVER_UNAVAILABLE',
    message: /ended while starting:\nno memory left/,
  });
});

test('aborting the signal cancels a start', async () => {
  await using fake = await fakeRedis('exec sleep 1000');
  const signal = AbortSignal.timeout(100);
  await assert.rejects(startRedis({ programFolders: [fake.folder], signal }), { code: 'ABORTED' });
  await assert.rejects(startRedis({ signal }), { code: 'ABORTED' });
});
