// The consumer groups of the document, on every engine: each is there, and moves on as its table says.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../src/bus/bus-fixture.conformance.ts';
import type { Bus, StreamGroup } from '../../src/bus/index.ts';
import { consumerGroups } from '../../src/contracts/index.ts';
import { createTaskSweep, startTaskOrchestrator, type Tasks } from '../../src/tasks/index.ts';
import { openTasksAt, type TasksPlace } from './open-tasks.ts';

const type = 'report-gen';
const queue = `gbe.tasks.${type}.queue`;

async function groupIn(bus: Bus, subject: string, name: string): Promise<StreamGroup | undefined> {
  return (await bus.stream(subject))?.groups.find((group) => group.name === name);
}

async function endOne(tasks: Tasks): Promise<void> {
  const [job] = await tasks.claim({ worker: 'w', types: { [type]: 1 }, waitMs: 20_000 });
  if (job === undefined) assert.fail('nothing came');
  await tasks.complete(job.token, 'done');
}

export function groupsCases(
  engine: string,
  open: () => Promise<{ readonly place: TasksPlace; readonly bus: Bus }>,
): void {
  test(`${engine}: the workers' group moves on with what was handed out, and holds what was not`, async () => {
    const { place, bus } = await open();
    await using streams = bus;
    await using tasks = await openTasksAt(place);
    await using orchestrator = startTaskOrchestrator(tasks, {
      consume: (definition, handler) => streams.consume(definition, handler),
      group: (definition) => streams.group(definition),
    });
    const workers = consumerGroups.workers(type);
    const sweeper = createTaskSweep(tasks);
    await tasks.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ type, payload: { n } })));
    for (let n = 0; n < 3; n += 1) await endOne(tasks);
    await eventually('three of five are acked', async () => {
      await sweeper.sweep();
      const group = await groupIn(streams, queue, workers);
      return group !== undefined && group.lag + group.pending === 2;
    });
    // Whoever trims keeps what waits for a worker.
    const { removed, heldBack } = await streams.trim(queue, { lengthMax: 0 });
    assert.deepEqual({ removed, heldBack }, { removed: 3, heldBack: 2 });
    for (let n = 0; n < 2; n += 1) await endOne(tasks);
    await eventually('all of them are', async () => {
      await sweeper.sweep();
      const group = await groupIn(streams, queue, workers);
      return group?.lag === 0 && group.pending === 0;
    });
    const names = (await streams.groups()).map(({ name, subject }) => `${name} of ${subject}`);
    assert.ok(names.includes(`${workers} of ${queue}`), names.join(', '));
    assert.ok(names.includes(`${type}-orchestrator of gbe.tasks.${type}.progress`));
    assert.deepEqual(await streams.deadLetters(workers), []);
    await orchestrator[Symbol.asyncDispose]();
  });
}
