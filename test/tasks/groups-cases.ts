// The consumer groups of the task document on every engine: each exists, and acks as documented.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../src/testing/assertions.ts';
import { copyToArchive } from '../../src/bus/archive.ts';
import {
  fileColdStorage,
  readArchive,
  sweepBus,
  type Bus,
  type StreamGroup,
} from '../../src/bus/index.ts';
import { systemClock } from '../../src/foundation/index.ts';
import { consumerGroups } from '../../src/contracts/index.ts';
import { forgetMonitors, monitorTasks } from '../../src/platform/index.ts';
import { createTaskSweep, startTaskOrchestrator, type Tasks } from '../../src/tasks/index.ts';
import { openTasksAt, type TasksAddress } from './open-tasks.ts';

const type = 'report-gen';
const queue = `gbe.tasks.${type}.queue`;

async function groupIn(bus: Bus, subject: string, name: string): Promise<StreamGroup | undefined> {
  return (await bus.stream(subject))?.groups.find((group) => group.name === name);
}

/** Completes one job and waits for its terminal message, which some engines publish after the record. */
async function endOne(tasks: Tasks, bus: Bus): Promise<void> {
  const terminal = `gbe.tasks.${type}.terminal`;
  const before = (await bus.stream(terminal))?.length ?? 0;
  const [job] = await tasks.claim({ worker: 'w', types: { [type]: 1 }, waitMs: 20_000 });
  if (job === undefined) assert.fail('no job was claimed');
  await tasks.complete(job.token, 'done');
  await eventually('the terminal signal of the job is published', async () => {
    const stream = await bus.stream(terminal);
    return (stream?.length ?? 0) > before;
  });
}

export function groupsCases(
  engine: string,
  open: () => Promise<{ readonly address: TasksAddress; readonly bus: Bus }>,
): void {
  test(`${engine}: the group of the workers acks claimed jobs and holds the others`, async () => {
    const { address, bus } = await open();
    await using streams = bus;
    await using tasks = await openTasksAt(address);
    await using orchestrator = startTaskOrchestrator(tasks, {
      consume: (definition, handler) => streams.consume(definition, handler),
      group: (definition) => streams.group(definition),
    });
    const workers = consumerGroups.workers(type);
    const sweeper = createTaskSweep(tasks);
    await tasks.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ type, payload: { n } })));
    for (let n = 0; n < 3; n += 1) await endOne(tasks, streams);
    await eventually('three of five are acked', async () => {
      await sweeper.sweep();
      const group = await groupIn(streams, queue, workers);
      return group !== undefined && group.lag + group.pending === 2;
    });
    // Trimming keeps the messages of jobs that no worker has claimed.
    const { removed, heldBack } = await streams.trim(queue, { lengthMax: 0 });
    assert.deepEqual({ removed, heldBack }, { removed: 3, heldBack: 2 });
    for (let n = 0; n < 2; n += 1) await endOne(tasks, streams);
    await eventually('all five are acked', async () => {
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

  test(`${engine}: monitors receive the terminal signal of each job once, and again if they did not ack it`, async () => {
    const { address, bus } = await open();
    await using streams = bus;
    await using tasks = await openTasksAt(address);
    const ids = (
      await tasks.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ type, payload: { n } })))
    ).map(({ id }) => id);
    for (let n = 0; n < 3; n += 1) await endOne(tasks, streams);
    const { signal } = new AbortController();
    const received: unknown[] = [];
    // The loop ends before the second message is acked, so it comes again.
    for await (const { signal: end } of await monitorTasks(streams, { signal, isOnce: true })) {
      received.push(end['taskId']);
      if (received.length === 2) break;
    }
    const again: unknown[] = [];
    await eventually('the other ends are received', async () => {
      for await (const { signal: end } of await monitorTasks(streams, { signal, isOnce: true })) {
        again.push(end['taskId']);
      }
      return again.length >= 2;
    });
    assert.equal(again.length, 2);
    assert.ok(again.includes(received[1]));
    assert.equal(new Set([...received, ...again]).size, 3);
    // The group holds only the message that no monitor has read.
    await endOne(tasks, streams);
    const terminal = `gbe.tasks.${type}.terminal`;
    const { removed, heldBack } = await streams.trim(terminal, { lengthMax: 0 });
    assert.deepEqual({ removed, heldBack }, { removed: 3, heldBack: 1 });
    const group = await groupIn(streams, terminal, consumerGroups.monitors);
    assert.equal((group?.lag ?? 0) + (group?.pending ?? 0), 1);
    assert.equal(await forgetMonitors(streams), true);
    assert.equal((await streams.trim(terminal, { lengthMax: 0 })).removed, 1);
    assert.equal(new Set(ids).size, 4);
  });

  test(`${engine}: the archiver acks the messages in cold storage and holds the others`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-archiver-'));
    try {
      const { address, bus } = await open();
      await using streams = bus;
      await using tasks = await openTasksAt(address);
      const archive = fileColdStorage(folder);
      await tasks.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ type, payload: { n } })));
      const terminal = `gbe.tasks.${type}.terminal`;
      const lag = async (): Promise<number> => {
        const group = await groupIn(streams, terminal, consumerGroups.archiver);
        return group === undefined ? Number.NaN : group.lag + group.pending;
      };
      for (let n = 0; n < 2; n += 1) await endOne(tasks, streams);
      // A sweep leaves messages of the current millisecond, so its clock is ahead.
      const inASecond = { ...systemClock, now: () => Date.now() + 1_000 };
      const first = await sweepBus(streams, { archive, clock: inASecond });
      // The messages are copied long before they are old enough to be removed.
      assert.deepEqual([first.archived, first.removed, first.failed], [2, 0, 0]);
      assert.equal(await lag(), 0);
      await endOne(tasks, streams);
      assert.equal(await lag(), 1);
      const trimmed = await streams.trim(terminal, { lengthMax: 0 });
      assert.deepEqual([trimmed.removed, trimmed.heldBack], [2, 1]);
      // Simulates an archiver killed between copy and ack: the copy exists once, and the next run acks.
      await copyToArchive(streams, archive, terminal, { before: new Date(inASecond.now()) });
      assert.equal(await lag(), 1);
      assert.equal((await sweepBus(streams, { archive })).archived, 0);
      assert.equal(await lag(), 0);
      for (let n = 0; n < 2; n += 1) await endOne(tasks, streams);
      const inMonths = Date.now() + 40 * 86_400_000;
      const clock = { ...systemClock, now: () => inMonths };
      const last = await sweepBus(streams, { archive, clock });
      assert.equal(last.archived, 2);
      assert.equal((await streams.stream(terminal))?.length ?? 0, 0);
      const ids: unknown[] = [];
      for await (const { data } of readArchive(archive, terminal)) {
        ids.push((JSON.parse(Buffer.from(data).toString()) as { readonly id: string }).id);
      }
      assert.deepEqual([ids.length, new Set(ids).size], [5, 5]);
      assert.deepEqual(await streams.deadLetters(consumerGroups.archiver), []);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}
