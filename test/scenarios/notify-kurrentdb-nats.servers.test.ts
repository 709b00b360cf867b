import { join } from 'node:path';
import { test } from 'node:test';
import { sqliteEventStore } from '../../src/engines/sqlite/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { startNats, startRedis } from '../../src/testing/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { notifyScenario } from './notify-scenario.ts';

test('a customer is told now, together, again, and by every channel, with the adapter of KurrentDB, Redis and NATS', async () => {
  await using workspace = await createWorkspace();
  const file = (name: string): string => `sqlite:${join(workspace.folder, name)}`;
  await using served = await sqliteEventStore(file('served.db'), kurrentStoreOptions);
  // Tokens are kept by the platform in the store itself, which not everybody may write there.
  const authenticate = async () => ({ mayRead: true, mayWrite: true, isAdmin: true });
  await using server = await startKurrentServer(served, { port: 0, authenticate });
  await using redis = await startRedis();
  await using nats = await startNats();
  await notifyScenario({
    store: server.url,
    outbox: file('outbox.db'),
    keys: redis.url,
    bus: nats.url,
  });
});
