import { openMemory } from '../../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../../foundation/error.ts';
import { rejectsWith } from '../../testing/assertions.ts';
import { claimOne } from '../../testing/conformance/tasks/fixture.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { createTasks } from '../create-tasks.ts';
import type { TaskEngine } from '../task-engine.ts';
import { createTaskSweep } from './task-sweeper.ts';
import { taskType } from '../task-type.ts';

const hourMs = 3_600_000;

test('jobs are counted once an hour, not with each sweep, and old jobs of all types are removed', async () => {
  const clock = fakeClock();
  const memory = openMemory({ clock }).tasks;
  let counted = 0;
  const engine: TaskEngine = {
    ...memory,
    counts() {
      counted += 1;
      return memory.counts();
    },
  };
  const types = ['email-send', 'report-gen'].map((name) => taskType(name, { retentionMs: hourMs }));
  await using tasks = createTasks(engine, { types, clock });
  const endOne = async (type: string): Promise<string> => {
    const { id } = await tasks.enqueue({ type, payload: null });
    await tasks.cancel(id);
    return id;
  };
  const ids = [await endOne('email-send'), await endOne('report-gen')];
  // The type is no longer configured, so the default retention applies.
  tasks.setTypes(types.slice(0, 1));
  const sweeper = createTaskSweep(tasks);
  for (let n = 0; n < 5; n += 1) await sweeper.sweep();
  assert.equal(counted, 1);
  await clock.advance(hourMs + 1);
  assert.equal((await sweeper.sweep()).removed, 1);
  assert.equal(counted, 2);
  await clock.advance(31 * 24 * hourMs);
  assert.equal((await sweeper.sweep()).removed, 1);
  assert.deepEqual(await Promise.all(ids.map((id) => tasks.get(id))), [undefined, undefined]);
});

test('a lost signal is found although many newer jobs have changed, and the engine was away', async () => {
  const clock = fakeClock();
  const memory = openMemory({ clock }).tasks;
  const capabilities = { ...memory.capabilities, atomicSignals: false };
  let isAway = false;
  const engine: TaskEngine = {
    ...memory,
    capabilities,
    list(filter, page) {
      const { updatedFromMs = 0 } = filter;
      if (!isAway || updatedFromMs < clock.now() - hourMs) return memory.list(filter, page);
      throw new MillraceError('TASKS_UNAVAILABLE', 'away');
    },
  };
  await using tasks = createTasks(engine, { types: [taskType('email-send')], clock });
  const { sweep } = createTaskSweep(tasks);
  await tasks.enqueue({ type: 'email-send', payload: 0 });
  const { token } = await claimOne(tasks);
  await clock.advance(1);
  for (let at = 0; at < 2; at += 1) {
    await tasks.enqueueMany(
      Array.from({ length: 600 }, (_, n) => ({ type: 'email-send', payload: n })),
    );
  }
  assert.equal((await sweep()).signals, 0);
  // As if a process were killed between the record and its signal.
  const head = { state: 'completed', endedAtMs: clock.now() } as const;
  const { id, fence } = token;
  const change = { id, type: 'email-send', guard: { fence }, head, fields: {}, signals: [] };
  await memory.changeAndClaim([change], undefined, clock.now());
  isAway = true;
  for (let at = 0; at < 2; at += 1) {
    await rejectsWith(sweep, 'TASKS_UNAVAILABLE');
    await clock.advance(120_000);
  }
  isAway = false;
  const swept = [await sweep(), await sweep(), await sweep()];
  assert.deepEqual(
    swept.map(({ signals }) => signals),
    [0, 1, 0],
  );
});
