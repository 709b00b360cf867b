// A worker process that is killed without warning: it records each step in its own file.

import { fsyncSync, openSync, writeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../src/foundation/clock.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { createTasks, startTaskSweeper, startWorkers, task } from '../../src/tasks/index.ts';
import { rigSteps, rigType } from './rig-type.ts';
import type { WorkerNote } from './task-history.ts';

export interface TaskWorkerInput {
  readonly url: string;
  readonly worker: string;
  readonly file: string;
  readonly leaseMs: number;
  readonly stepMs: number;
  readonly beatsFromThread: boolean;
}

const input = JSON.parse(process.argv[2] ?? '') as TaskWorkerInput;
const file = openSync(input.file, 'a');

function note(kind: WorkerNote['kind'], id: string, step: string): void {
  const entry: WorkerNote = { kind, id, step, atNs: String(process.hrtime.bigint()) };
  writeSync(file, `${JSON.stringify(entry)}\n`);
  fsyncSync(file);
}

const definition = task(rigType.name, async (ctx) => {
  for (const step of rigSteps) {
    await ctx.step(step, async () => {
      note('ran', ctx.taskId, step);
      // Yields, so that a kill can hit a running step.
      await (input.stepMs > 0 ? systemClock.sleep(input.stepMs) : setImmediate());
      return step;
    });
    note('finished', ctx.taskId, step);
  }
});

const tasks = createTasks(await openRole(input.url, 'tasks'), { types: [rigType] });
startTaskSweeper(tasks, { everyMs: 250 });
const { worker, leaseMs, beatsFromThread } = input;
startWorkers(tasks, [definition], { worker, leaseMs, beatsFromThread });
process.send?.({ kind: 'started' });
