import { test } from 'node:test';
import { inRounds } from '../store/rig.ts';
import { checkRun, killWorkers } from './kill-workers.ts';
import { openPostgresRig } from './open-postgres-rig.ts';
import { planOf } from './plan.ts';

test('workers on PostgreSQL that are killed lose no event, repeat none and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openPostgresRig();
    const plan = planOf({ engine: 'postgres', url: rig.url, seed });
    await killWorkers(plan, rig);
    await checkRun(plan, rig);
  }));
