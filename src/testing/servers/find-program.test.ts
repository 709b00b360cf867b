import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { startNats } from './nats-server.ts';
import { startPostgres } from './postgres-server.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { startRedis } from './redis-server.ts';

const missing = [
  { start: startPostgres, message: 'initdb is not installed: apt-get install postgresql' },
  { start: startRedis, message: 'redis-server is not installed: apt-get install redis-server' },
  {
    start: startRedisCluster,
    message: 'redis-server is not installed: apt-get install redis-server',
  },
  { start: startNats, message: 'nats-server is not installed: apt-get install nats-server' },
];

for (const { start, message } of missing) {
  test(`${start.name} names the package of a missing program`, async () => {
    await assert.rejects(start({ programFolders: ['/nowhere'] }), (error) => {
      assert.ok(hasCode(error, 'SERVER_UNAVAILABLE'));
      assert.equal(error.message, message);
      assert.equal(error.retryable, false);
      return true;
    });
  });
}
