import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { MillraceError } from '../../foundation/error.ts';
import { poolAt, servePool } from './pool-socket.ts';
import type { ServerPool } from './server-pool.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

const unavailable = (): Promise<never> =>
  Promise.reject(new MillraceError('SERVER_UNAVAILABLE', 'nats-server is not installed'));

const pool: ServerPool = {
  postgres: async () => ({ url: 'postgres://here' }),
  redis: async () => ({ url: 'redis://here', keyPrefix: 't1:' }),
  redisCluster: unavailable,
  nats: unavailable,
};

test('a socket forwards the results and errors of its pool', async () => {
  const folder = await createTempFolder('test');
  const socketPath = join(folder, 'socket');
  await using served = await servePool(pool, socketPath);
  const behind = poolAt(socketPath);
  assert.deepEqual(await behind.postgres(), { url: 'postgres://here' });
  assert.deepEqual(await behind.redis(), { url: 'redis://here', keyPrefix: 't1:' });
  const reason = { code: 'SERVER_UNAVAILABLE', message: 'nats-server is not installed' };
  await assert.rejects(behind.nats(), reason);

  await served[Symbol.asyncDispose]();
  await assert.rejects(behind.redis(), { code: 'SERVER_UNAVAILABLE', message: /does not respond/ });
  await removeTempFolder(folder);
});
