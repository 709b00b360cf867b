import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createTasks } from './create-tasks.ts';
import { taskType } from './task-type.ts';
import type { Tasks } from './tasks.ts';

async function endOne(tasks: Tasks): Promise<void> {
  const [claimed] = await tasks.claim({ worker: 'w-1', types: { 'email-send': 1 }, waitMs: 0 });
  await tasks.complete(claimed?.token ?? assert.fail('no job was claimed'), 'sent');
}

test('whenEnded resolves when the job ends in this process, and polls for jobs that end in another one', async () => {
  const clock = fakeClock();
  const engine = openMemory({ clock }).tasks;
  const options = { clock, types: [taskType('email-send')] };
  const other = createTasks(engine, options);
  await using tasks = createTasks(engine, options);

  const here = await tasks.enqueue({ type: 'email-send', payload: 1 });
  const endedHere = tasks.whenEnded(here.id);
  while (clock.sleepers === 0) await new Promise(setImmediate);
  await endOne(tasks);
  assert.equal((await endedHere).result, 'sent');
  assert.equal(clock.sleepers, 0);

  const elsewhere = await tasks.enqueue({ type: 'email-send', payload: 2 });
  const endedElsewhere = tasks.whenEnded(elsewhere.id);
  while (clock.sleepers === 0) await new Promise(setImmediate);
  await endOne(other);
  await clock.advance(500);
  assert.equal((await endedElsewhere).result, 'sent');
});

test('whenEnded rejects when the tasks are closed', async () => {
  const clock = fakeClock();
  const tasks = createTasks(openMemory({ clock }).tasks, {
    clock,
    types: [taskType('email-send')],
  });
  const { id } = await tasks.enqueue({ type: 'email-send', payload: 1 });
  const ended = tasks.whenEnded(id);
  while (clock.sleepers === 0) await new Promise(setImmediate);
  await tasks[Symbol.asyncDispose]();
  await assert.rejects(ended, (error) => hasCode(error, 'ABORTED'));
  assert.equal(clock.sleepers, 0);
});
