// Workers, sweepers and orchestrators, started and stopped in any order: nothing stays open, and no job is lost.

import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLifecycle, type Lifecycle } from '../foundation/lifecycle.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { createTasks } from './create-tasks.ts';
import { startTaskOrchestrator } from './run/start-orchestrator.ts';
import { startWorkers } from './run/start-workers.ts';
import { task } from './task-definition.ts';
import { startTaskSweeper } from './run/task-sweeper.ts';
import { taskType } from './task-type.ts';

/** One part of a process: started, then disposed. */
function lifecycleOf(start: () => AsyncDisposable): Lifecycle {
  let started: AsyncDisposable | undefined;
  return createLifecycle({
    async start() {
      started = start();
    },
    async stop() {
      await started?.[Symbol.asyncDispose]();
      started = undefined;
    },
  });
}

const backoff = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
const types = [taskType('email-send', { workers: 3, retries: 5, backoff })];

test('workers and sweepers that start and stop in any order leave no timer and lose no job', async () => {
  await using tasks = createTasks(openMemory().tasks, { types });
  const ran = new Map<string, number>();
  const emailSend = task('email-send', async (ctx) => {
    await ctx.step('send', async () => {
      ran.set(ctx.taskId, (ran.get(ctx.taskId) ?? 0) + 1);
      await new Promise(setImmediate);
    });
    await ctx.sleep(1);
    await ctx.step('note', () => undefined);
  });
  const jobs = Array.from({ length: 300 }, () => emailSend.job(null));
  const ids = (await tasks.enqueueMany(jobs)).map(({ id }) => id);
  await stressLifecycle({
    rounds: 100,
    create: () => lifecycleOf(() => startWorkers(tasks, [emailSend], { drainMs: 5_000 })),
    async assertReleased() {
      assert.deepEqual(await tasks.workers(), []);
      const running = await tasks.list({ state: 'running' });
      assert.deepEqual(
        running.tasks.map(({ id }) => id),
        [],
      );
    },
  });
  await stressLifecycle({
    rounds: 100,
    seed: 2,
    create: () => lifecycleOf(() => startTaskSweeper(tasks, { everyMs: 1 })),
  });

  await using workers = startWorkers(tasks, [emailSend], { drainMs: 5_000 });
  for (const id of ids) {
    const ended = await tasks.whenEnded(id, { timeoutMs: 30_000 });
    assert.deepEqual([ended.state, ended.failures], ['completed', 0]);
  }
  await workers.stop();
  // A stopping worker lets every step finish within `drainMs`, so no step ran twice.
  assert.deepEqual(
    [...ran.values()].filter((times) => times !== 1),
    [],
  );
});

test('workers without time to drain release all jobs, and each job ends once', async () => {
  await using db = openMemory();
  await using tasks = createTasks(db.tasks, { types });
  const emailSend = task('email-send', async (ctx) => {
    await ctx.step('send', () => new Promise(setImmediate));
  });
  const jobs = Array.from({ length: 100 }, () => emailSend.job(null));
  const ids = (await tasks.enqueueMany(jobs)).map(({ id }) => id);
  await stressLifecycle({
    rounds: 50,
    seed: 3,
    create: () => lifecycleOf(() => startWorkers(tasks, [emailSend], { drainMs: 0 })),
    async assertReleased() {
      assert.equal((await tasks.list({ state: 'running' })).tasks.length, 0);
    },
  });
  await using workers = startWorkers(tasks, [emailSend]);
  for (const id of ids) await tasks.whenEnded(id, { timeoutMs: 30_000 });
  await workers.stop();
  const terminal = await db.bus.stream('gbe.tasks.email-send.terminal');
  assert.equal(terminal?.length, ids.length);
});

test('orchestrators that start and stop in any order leave no consumer', async () => {
  await using tasks = createTasks(openMemory().tasks, { types });
  let open = 0;
  await stressLifecycle({
    rounds: 100,
    seed: 4,
    create: () =>
      lifecycleOf(() =>
        startTaskOrchestrator(tasks, {
          everyMs: 1,
          async consume() {
            await new Promise(setImmediate);
            open += 1;
            return {
              async [Symbol.asyncDispose]() {
                open -= 1;
              },
            };
          },
        }),
      ),
    assertReleased: () => assert.equal(open, 0),
  });
});
