import { test } from 'node:test';
import { inRounds } from '../store/rig.ts';
import { checkRun, killWorkers } from './kill-workers.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';
import { planOf } from './plan.ts';

test('workers on SQLite that are killed lose no event, repeat none and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openSqliteRig();
    const plan = planOf({ engine: 'sqlite', url: rig.url, seed });
    await killWorkers(plan, rig);
    await checkRun(plan, rig);
  }));
