import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { createWorkspace, inRounds } from '../store/rig.ts';
import { commandRedis } from '../subscriptions/command-redis.ts';
import { killSagas } from './kill-sagas.ts';

test('sagas whose index is in a Redis that is killed and emptied all end, with each effect once', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    const path = join(workspace.folder, 'events.db');
    await using db = await openSqlite(path);
    await using redis = await startRedis({ appendOnly: 'always' });
    await using sagas = await openRole(redis.url, 'sagas');
    let disturbances = 0;
    const disturb = async (random: SeededRandom): Promise<void> => {
      disturbances += 1;
      // Each kind of disturbance once, then at random.
      if (disturbances === 1 || (disturbances > 2 && random.below(2) === 0)) {
        await commandRedis(redis.port, 'FLUSHALL');
      } else {
        await redis.kill();
        await redis.start();
      }
    };
    const plan = { engine: 'sqlite', url: `sqlite:${path}`, seed } as const;
    const { store, subscriptions } = db;
    const elsewhere = { url: redis.url, disturb };
    await killSagas({ ...plan, elsewhere }, { store, subscriptions, sagas });
  }));
