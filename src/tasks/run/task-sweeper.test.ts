import { openMemory } from '../../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
