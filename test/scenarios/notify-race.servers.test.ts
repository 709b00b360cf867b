import { join } from 'node:path';
import { test } from 'node:test';
import { sharedPostgres, startRedis } from '../../src/testing/index.ts';
import { createWorkspace, soakMinutes } from '../store/rig.ts';
import { notifyRace } from './notify-race.ts';

// In `npm test`, the kill tests of sagas, projections and subscriptions use PostgreSQL for these roles.
if (soakMinutes > 0) {
  test('concurrent processes create one digest per window and each reminder once, on PostgreSQL', async () => {
    const { url: store } = await sharedPostgres();
    await using workspace = await createWorkspace();
    await notifyRace({ store, bus: `sqlite:${join(workspace.folder, 'bus.db')}` });
  });
}

test('concurrent processes create one digest per window and each reminder once, with read models, leases, sagas and bus in Redis', async () => {
  const { url: store } = await sharedPostgres();
  await using redis = await startRedis();
  await notifyRace({ store, keys: redis.url, bus: redis.url });
});
