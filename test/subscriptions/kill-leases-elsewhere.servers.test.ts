import { test } from 'node:test';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { sharedNats } from '../../src/testing/servers/shared-servers.ts';
import { inRounds } from '../store/rig.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';
import { checkRun, killWorkers } from './kill-workers.ts';
import { planOf } from './plan.ts';
import { takeOver } from './take-over.ts';
import { tellRedis } from './tell-redis.ts';

test('workers with leases in a Redis that forgets them lose nothing, repeat nothing, and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openSqliteRig();
    await using redis = await startRedis();
    const plan = {
      ...planOf({ engine: 'sqlite', url: rig.url, seed }),
      leases: redis.url,
      alsoFault: () => tellRedis(redis.port, 'FLUSHALL'),
    };
    await killWorkers(plan, rig);
    await checkRun(plan, rig);
  }));

test('a worker that stands by takes over when the lease in NATS expires', async () => {
  await using rig = await openSqliteRig();
  const { url } = await sharedNats();
  await takeOver({ ...planOf({ engine: 'sqlite', url: rig.url, seed: 1 }), leases: url }, rig);
});
