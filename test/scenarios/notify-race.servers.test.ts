import { join } from 'node:path';
import { test } from 'node:test';
import { sharedPostgres, startRedis } from '../../src/testing/index.ts';
import { createWorkspace } from '../store/rig.ts';
import { notifyRace } from './notify-race.ts';

test('processes at one window make one digest, and one of each reminder, with PostgreSQL', async () => {
  const { url: store } = await sharedPostgres();
  await using workspace = await createWorkspace();
  await notifyRace({ store, bus: `sqlite:${join(workspace.folder, 'bus.db')}` });
});

test('the same with read models, leases, sagas and the bus in Redis', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await notifyRace({ store, keys: redis.url, bus: redis.url });
});
