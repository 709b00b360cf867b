import { test } from 'node:test';
import { sharedPostgres, startRedis } from '../../src/testing/index.ts';
import { collabScenario } from './collab-scenario.ts';

test('a tag in a message changes the task, the board, screens and mailboxes, on PostgreSQL and Redis', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await collabScenario({ store, keys: redis.url });
});
