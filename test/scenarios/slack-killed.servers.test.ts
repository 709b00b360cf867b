import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startRedis } from '../../src/testing/index.ts';
import { momentsOnRedis, slackKilledAt } from './slack-killed.ts';

test('Redis and BullMQ: a process that is killed at a step posts each Slack request exactly once', async () => {
  await using redis = await startRedis();
  const folder = await mkdtemp(join(tmpdir(), 'millrace-slack-'));
  try {
    await slackKilledAt(momentsOnRedis, {
      store: `sqlite:${folder}/events.db`,
      keys: redis.url,
      queue: redis.url,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
