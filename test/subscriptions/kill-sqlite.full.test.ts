import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqliteEventStore } from '../../src/adapters/sqlite/index.ts';
import { createWorkspace, inRounds } from '../store/rig.ts';
import type { Effect } from './effects.ts';
import { checkRun, killWorkers, type Rigged } from './kill-workers.ts';
import { planOf } from './plan.ts';
import { takeOver } from './take-over.ts';

interface Opened extends Rigged, AsyncDisposable {
  readonly url: string;
}

async function openRig(folder: string): Promise<Opened> {
  const path = join(folder, 'events.db');
  const store = await sqliteEventStore(path);
  const database = new DatabaseSync(path, { timeout: 10_000 });
  database.exec(
    'create table effects (id integer primary key, event_id text, stream text, revision integer, worker text)',
  );
  const select = database.prepare(
    'select event_id as eventId, stream, revision, worker from effects order by id',
  );
  return {
    url: `sqlite:${path}`,
    store,
    effects: async () => select.all() as unknown as Effect[],
    async [Symbol.asyncDispose]() {
      database.close();
      await store[Symbol.asyncDispose]();
    },
  };
}

test('workers that are killed over one file lose nothing, repeat nothing, and keep the order', () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    await using rig = await openRig(workspace.folder);
    const plan = planOf({ engine: 'sqlite', url: rig.url, seed });
    const faults = await killWorkers(plan, rig);
    assert.ok(faults >= 3, `only ${faults} faults`);
    await checkRun(plan, rig);
  }));

test('a worker that stands by over one file takes over within the lease time', async () => {
  await using workspace = await createWorkspace();
  await using rig = await openRig(workspace.folder);
  await takeOver(planOf({ engine: 'sqlite', url: rig.url, seed: 1 }), rig);
});
