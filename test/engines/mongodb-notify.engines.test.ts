// Customer notifications with the event store on a server that speaks MongoDB's protocol.

import { join } from 'node:path';
import { test } from 'node:test';
import { startRedis } from '../../src/testing/index.ts';
import { notifyScenario } from '../scenarios/notify-scenario.ts';
import { createWorkspace } from '../store/rig.ts';
import { onEachMongodb } from '../../src/testing/support/mongodb/mongodb-targets.ts';

onEachMongodb('notifications', (target) => {
  test('a customer is notified immediately, by digest, by reminders and on every channel', async () => {
    await using workspace = await createWorkspace();
    await using redis = await startRedis();
    await notifyScenario({
      store: `${target.url()}/${target.newDatabase()}`,
      outbox: `sqlite:${join(workspace.folder, 'outbox.db')}`,
      keys: redis.url,
      bus: redis.url,
    });
  });
});
