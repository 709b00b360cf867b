import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { startRedis } from '../../src/testing/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { paymentsScenario } from './payments-scenario.ts';
import { assertSeedKeys } from './seed-keys.ts';

test('every payment completes or fails, with the KurrentDB adapter on the server of Millrace and Redis for keys', async () => {
  await using workspace = await createWorkspace();
  const file = (name: string): string => `sqlite:${join(workspace.folder, name)}`;
  await using served = await openSqlite(file('served.db'), kurrentStoreOptions);
  await using server = await startKurrentServer(served.store, { port: 0 });
  await using redis = await startRedis();
  await paymentsScenario({
    engines: { store: server.url, outbox: file('outbox.db'), keys: redis.url },
  });
  await assertSeedKeys(redis.url);
});
