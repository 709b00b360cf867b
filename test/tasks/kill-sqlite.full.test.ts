import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inRounds } from '../store/rig.ts';
import { killTaskWorkers, taskPlanOf } from './kill-workers.ts';

test('jobs in SQLite whose workers are killed end once, and no finished step runs again', () =>
  inRounds(async (seed) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-tasks-'));
    try {
      await killTaskWorkers(taskPlanOf({ url: `sqlite:${folder}/bus.db`, seed }));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }));
