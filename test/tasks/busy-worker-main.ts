// A worker whose step blocks the main thread until a file exists.

import { existsSync } from 'node:fs';
import { startWorkers, task } from '../../src/tasks/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openTasksAt, type TasksAddress } from './open-tasks.ts';

export interface BusyWorkerInput {
  readonly address: TasksAddress;
  readonly leaseMs: number;
  readonly releaseFile: string;
  readonly beatsFromThread: boolean;
}

const { address, leaseMs, releaseFile, beatsFromThread } = childInput() as BusyWorkerInput;

/** Blocks this thread: no timer fires and no response of the engine is read. */
function blockThread(): void {
  const never = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(releaseFile)) Atomics.wait(never, 0, 0, 20);
}

const reportGen = task('report-gen', async (ctx) => {
  const rows = await ctx.step('load', () => 3);
  await ctx.step('render', () => {
    tellParent('render');
    if (ctx.attempt === 1) blockThread();
  });
  return rows;
});

const tasks = await openTasksAt(address);
startWorkers(tasks, [reportGen], { leaseMs, beatsFromThread });
