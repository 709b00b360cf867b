import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse } from './converse.ts';
import { startRedis } from './redis-server.ts';

test('a Redis server responds on a separate port', async () => {
  await using redis = await startRedis();
  assert.equal(redis.url, `redis://127.0.0.1:${redis.port}`);
  assert.notEqual(redis.port, 6379);
  await converse(redis.port, [
    { send: 'PING\r\n', expect: /^\+PONG\r\n/ },
    { send: 'SET colour blue\r\n', expect: /^\+OK\r\n/ },
    { send: 'GET colour\r\n', expect: /^\$4\r\nblue\r\n/ },
  ]);
});

test('acknowledged writes survive a kill with appendfsync always', async () => {
  await using redis = await startRedis({ appendOnly: 'always' });
  const { port, pid } = redis;
  await converse(port, [{ send: 'SET colour blue\r\n', expect: /^\+OK\r\n/ }]);

  await redis.kill();
  assert.equal(redis.pid, undefined);
  await assert.rejects(converse(port, []), { code: 'ECONNREFUSED' });

  await redis.start();
  assert.equal(redis.port, port);
  assert.notEqual(redis.pid, pid);
  await converse(port, [{ send: 'GET colour\r\n', expect: /^\$4\r\nblue\r\n/ }]);
});

test('acknowledged writes survive a stop with appendfsync everysec', async () => {
  await using redis = await startRedis({ appendOnly: 'everysec' });
  await converse(redis.port, [{ send: 'SET colour blue\r\n', expect: /^\+OK\r\n/ }]);
  await redis.stop();
  await redis.start();
  await converse(redis.port, [{ send: 'GET colour\r\n', expect: /^\$4\r\nblue\r\n/ }]);
});

test('killing a Redis without persistence loses its data', async () => {
  await using redis = await startRedis();
  await converse(redis.port, [{ send: 'SET colour blue\r\n', expect: /^\+OK\r\n/ }]);
  await redis.kill();
  await redis.start();
  await converse(redis.port, [{ send: 'GET colour\r\n', expect: /^\$-1\r\n/ }]);
});

test('passes further settings to Redis', async () => {
  await using redis = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } });
  const turn = { send: 'CONFIG GET maxmemory-policy\r\n', expect: /noeviction\r\n/ };
  await converse(redis.port, [turn]);
});
