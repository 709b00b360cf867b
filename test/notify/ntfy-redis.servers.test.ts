import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../src/foundation/error.ts';
import { openTopics } from '../../src/notify/topics.ts';
import { openBus } from '../../src/platform/open-bus.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { testTogether } from './ntfy-together.ts';

// A server for each: other tests of a shared one would read these topics too.
testTogether('Redis', () => startRedis());

test('Redis: readers come first only where one process gives the order', async () => {
  await using server = await startRedis();
  await using bus = await openBus(server.url);
  await assert.rejects(
    () => openTopics(bus, { durability: 'readers-first' }),
    (error) => hasCode(error, 'NOT_SUPPORTED'),
  );
});
