// A step blocks the main thread of its worker for longer than the lease: the worker is slow, not dead.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startTaskSweeper, type Task } from '../../src/tasks/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import type { BusyWorkerInput } from './busy-worker-main.ts';
import { openTasksAt, type TasksPlace } from './open-tasks.ts';

const leaseMs = 1_500;
const busyMs = 2 * leaseMs;

/** Runs one job, one blocked worker, and a sweeper that runs many times within a lease. */
async function runBusy(
  place: TasksPlace,
  beatsFromThread: boolean,
): Promise<{ readonly ended: Task; readonly renders: number }> {
  await using tasks = await openTasksAt(place);
  const { id } = await tasks.enqueue({ type: 'report-gen', payload: null });
  const input: BusyWorkerInput = { place, leaseMs, busyMs, beatsFromThread };
  await using worker = startChild(new URL('./busy-worker-main.ts', import.meta.url), { input });
  await using sweeper = startTaskSweeper(tasks, { everyMs: 100 });
  const ended = await tasks.whenEnded(id, { timeoutMs: 60_000 });
  // After the kill, all messages of the worker have arrived.
  await worker.kill();
  await sweeper[Symbol.asyncDispose]();
  return { ended, renders: worker.messages.filter((message) => message === 'render').length };
}

/** The cases wait for leases, so they run concurrently. */
export function busyCases(register: () => void): void {
  describe('a worker with a busy main thread', { concurrency: true }, register);
}

/** Each engine has its own thread that sends heartbeats. */
export function threadCase(engine: string, open: () => Promise<TasksPlace>): void {
  it(`${engine}: a step that blocks the main thread beyond the lease runs once, because a thread sends heartbeats`, async () => {
    const { ended, renders } = await runBusy(await open(), true);
    assert.equal(ended.state, 'completed');
    assert.equal(ended.result, 3);
    assert.deepEqual([ended.attempt, ended.failures, renders], [1, 0, 1]);
  });
}

/** Leases expire in the same way on every engine; the conformance suite of tasks checks each of them. */
export function noThreadCase(engine: string, open: () => Promise<TasksPlace>): void {
  it(`${engine}: without the heartbeat thread, the blocked worker loses its lease and its late report is refused`, async () => {
    const { ended, renders } = await runBusy(await open(), false);
    assert.equal(ended.state, 'completed');
    assert.deepEqual([ended.attempt, ended.failures, renders], [2, 1, 2]);
  });
}
