// The heartbeat thread and its connection are created and closed with each start of workers.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createLifecycle } from '../../src/foundation/index.ts';
import { startWorkers, task, type TaskWorkers } from '../../src/tasks/index.ts';
import { stressLifecycle } from '../../src/testing/lifecycle-stress.ts';
import { openTasksAt } from './open-tasks.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-lifecycle-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('workers on SQLite that start and stop in any order leave no thread and no registered worker', async () => {
  const url = `sqlite:${join(folder, 'tasks.db')}`;
  await using tasks = await openTasksAt({ engine: 'sqlite', url });
  const reportGen = task('report-gen', async (ctx) => ctx.step('load', () => 1));
  await tasks.enqueueMany(Array.from({ length: 50 }, () => reportGen.job(null)));
  const threads = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
  const before = threads();
  await stressLifecycle({
    rounds: 15,
    create() {
      let workers: TaskWorkers | undefined;
      return createLifecycle({
        async start() {
          workers = startWorkers(tasks, [reportGen], { drainMs: 5_000 });
        },
        async stop() {
          await workers?.stop();
          workers = undefined;
        },
      });
    },
    async assertReleased() {
      // A heartbeat after the deregistration would keep the worker in the list.
      assert.deepEqual(await tasks.workers(), []);
      assert.ok(threads() <= before, 'a thread is still running');
      assert.equal((await tasks.list({ state: 'running' })).tasks.length, 0);
    },
  });
});
