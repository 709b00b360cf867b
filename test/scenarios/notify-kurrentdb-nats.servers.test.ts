import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { startNats, startRedis } from '../../src/testing/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { notifyScenario } from './notify-scenario.ts';

test('a customer is notified immediately, by digest, by reminders and on every channel, on the KurrentDB adapter, Redis and NATS', async () => {
  await using workspace = await createWorkspace();
  const file = (name: string): string => `sqlite:${join(workspace.folder, name)}`;
  await using served = await openSqlite(file('served.db'), kurrentStoreOptions);
  // The platform stores tokens in the store itself, which needs an administrator.
  const authenticate = async () => ({ scopes: ['admin'] as const });
  await using server = await startKurrentServer(served.store, { port: 0, authenticate });
  await using redis = await startRedis();
  await using nats = await startNats();
  await notifyScenario({
    store: server.url,
    outbox: file('outbox.db'),
    keys: redis.url,
    bus: nats.url,
  });
});
