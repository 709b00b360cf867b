import { test } from 'node:test';
import { inRounds, until } from '../store/rig.ts';
import { checkRun, killWorkers, subscriptionName } from './kill-workers.ts';
import { openRedisRig } from './open-redis-rig.ts';
import { planOf } from './plan.ts';

test('workers on Redis that are killed, next to a Redis that is killed, lose no event and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openRedisRig();
    const { redis } = rig;
    const plan = {
      ...planOf({ engine: 'sqlite', url: rig.url, seed }),
      subscriptions: redis.url,
      async alsoFault() {
        await redis.kill();
        await redis.start();
        await until('the rig is connected again', () =>
          rig.subscriptions.waiting.count(subscriptionName).then(
            () => true,
            () => false,
          ),
        );
      },
    };
    await killWorkers(plan, rig);
    await checkRun(plan, rig);
  }));
