import { test } from 'node:test';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { sharedNats } from '../../src/testing/servers/shared-servers.ts';
import { inRounds } from '../store/rig.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';
import { checkRun, killWorkers } from './kill-workers.ts';
import { planOf } from './plan.ts';
import { takeOver } from './take-over.ts';
import { commandRedis } from './command-redis.ts';

test('workers whose leases are in a Redis that is emptied lose no event, repeat none and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openSqliteRig();
    await using redis = await startRedis();
    const plan = {
      ...planOf({ engine: 'sqlite', url: rig.url, seed }),
      leases: redis.url,
      alsoFault: () => commandRedis(redis.port, 'FLUSHALL'),
    };
    await killWorkers(plan, rig);
    await checkRun(plan, rig);
  }));

test('a standby worker takes over when the lease in NATS expires', async () => {
  await using rig = await openSqliteRig();
  const { url } = await sharedNats();
  await takeOver({ ...planOf({ engine: 'sqlite', url: rig.url, seed: 1 }), leases: url }, rig);
});
