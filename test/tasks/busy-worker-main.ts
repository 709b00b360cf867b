// A worker whose step blocks the main thread for longer than its lease.

import { startWorkers, task } from '../../src/tasks/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openTasksAt, type TasksPlace } from './open-tasks.ts';

export interface BusyWorkerInput {
  readonly place: TasksPlace;
  readonly leaseMs: number;
  readonly busyMs: number;
  readonly beatsFromThread: boolean;
}

const { place, leaseMs, busyMs, beatsFromThread } = childInput() as BusyWorkerInput;

/** Blocks this thread: no timer fires and no answer of the engine is read. */
function keepBusy(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busyMs);
}

const reportGen = task('report-gen', async (ctx) => {
  const rows = await ctx.step('load', () => 3);
  await ctx.step('render', () => {
    tellParent('render');
    if (ctx.attempt === 1) keepBusy();
  });
  return rows;
});

const tasks = await openTasksAt(place);
startWorkers(tasks, [reportGen], { leaseMs, beatsFromThread });
