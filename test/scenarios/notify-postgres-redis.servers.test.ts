import { test } from 'node:test';
import { sharedPostgres, startRedis } from '../../src/testing/index.ts';
import { notifyScenario } from './notify-scenario.ts';

test('a customer is notified immediately, by digest, by reminders and on every channel, on PostgreSQL and Redis', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await notifyScenario({ store, keys: redis.url, bus: redis.url });
});
