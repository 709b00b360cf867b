import { test } from 'node:test';
import { sharedPostgres, startRedis } from '../../src/testing/index.ts';
import { paymentsScenario } from './payments-scenario.ts';
import { assertSeedKeys } from './seed-keys.ts';

test('every payment completes or fails, with PostgreSQL for events and outbox and Redis for keys and queues', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await paymentsScenario({ engines: { store, keys: redis.url, queue: redis.url } });
  await assertSeedKeys(redis.url);
});

test('every payment completes or fails, on several platforms with different roles', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await paymentsScenario({
    engines: { store, keys: redis.url, queue: redis.url },
    roles: [['api', 'sweepers'], ['subscriptions'], ['subscriptions', 'dispatcher'], ['workers']],
  });
});
