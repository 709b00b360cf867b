import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWorkspace, inRounds } from '../store/rig.ts';
import { checkRun, killWorkers } from './kill-workers.ts';
import { planOf } from './plan.ts';
import { openSqliteRig } from './sqlite-rig.ts';
import { takeOver } from './take-over.ts';

test('workers that are killed over one file lose nothing, repeat nothing, and keep the order', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    await using rig = await openSqliteRig(workspace.folder);
    const plan = planOf({ engine: 'sqlite', url: rig.url, seed });
    const faults = await killWorkers(plan, rig);
    assert.ok(faults >= 3, `only ${faults} faults`);
    await checkRun(plan, rig);
  }));

test('a worker that stands by over one file takes over within the lease time', async () => {
  await using workspace = await createWorkspace();
  await using rig = await openSqliteRig(workspace.folder);
  await takeOver(planOf({ engine: 'sqlite', url: rig.url, seed: 1 }), rig);
});
