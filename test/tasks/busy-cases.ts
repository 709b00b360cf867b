// A step blocks the main thread of its worker: the worker is slow, not dead.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as realSleep } from 'node:timers/promises';
import { startTaskSweeper, type Task, type Tasks } from '../../src/tasks/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import type { BusyWorkerInput } from './busy-worker-main.ts';
import { openTasksAt, type TasksAddress } from './open-tasks.ts';

interface BusyRun {
  readonly beatsFromThread: boolean;
  readonly leaseMs: number;
  /** Called while the main thread of the worker is blocked; the thread continues when it resolves. */
  readonly whileBlocked: (tasks: Tasks, jobId: string) => Promise<void>;
}

/** Runs one job on one worker that blocks, next to a sweeper that runs many times within a lease. */
async function runBusy(
  address: TasksAddress,
  { beatsFromThread, leaseMs, whileBlocked }: BusyRun,
): Promise<{ readonly ended: Task; readonly renders: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-busy-'));
  try {
    const releaseFile = join(folder, 'release');
    await using tasks = await openTasksAt(address);
    const { id } = await tasks.enqueue({ type: 'report-gen', payload: null });
    const input: BusyWorkerInput = { address, leaseMs, releaseFile, beatsFromThread };
    await using worker = startChild(new URL('./busy-worker-main.ts', import.meta.url), { input });
    await using sweeper = startTaskSweeper(tasks, { everyMs: 100 });
    await until(async () => worker.messages.includes('render'));
    await whileBlocked(tasks, id);
    writeFileSync(releaseFile, '');
    const ended = await tasks.whenEnded(id, { timeoutMs: 60_000 });
    // After the kill, all messages of the worker have arrived.
    await worker.kill();
    await sweeper[Symbol.asyncDispose]();
    return { ended, renders: worker.messages.filter((message) => message === 'render').length };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let left = 6_000; !(await holds()); left -= 1) {
    assert.ok(left > 0, 'the condition never became true');
    await realSleep(10);
  }
}

/** The cases wait for leases, so they run concurrently. */
export function busyCases(register: () => void): void {
  describe('a worker with a blocked main thread', { concurrency: true }, register);
}

/** Each engine has its own thread that sends heartbeats. */
export function threadCase(engine: string, open: () => Promise<TasksAddress>): void {
  it(`${engine}: a thread sends heartbeats while a step blocks the main thread, so the step runs once`, async () => {
    const { ended, renders } = await runBusy(await open(), {
      beatsFromThread: true,
      // Covers the start of the thread on a busy machine.
      leaseMs: 12_000,
      async whileBlocked(tasks) {
        const aliveUntil = new Set<number>();
        // A heartbeat of the main thread may have been on its way, so two more are needed.
        await until(async () => {
          for (const worker of await tasks.workers()) {
            aliveUntil.add(worker.aliveUntil.getTime());
          }
          return aliveUntil.size > 2;
        });
      },
    });
    assert.equal(ended.state, 'completed');
    assert.equal(ended.result, 3);
    assert.deepEqual([ended.attempt, ended.failures, renders], [1, 0, 1]);
  });
}

/** Leases expire in the same way on every engine; the conformance suite of tasks checks each of them. */
export function noThreadCase(engine: string, open: () => Promise<TasksAddress>): void {
  it(`${engine}: without the heartbeat thread, the blocked worker loses its lease and its late report is rejected`, async () => {
    const { ended, renders } = await runBusy(await open(), {
      beatsFromThread: false,
      leaseMs: 1_500,
      whileBlocked: (tasks, id) => until(async () => (await tasks.get(id))?.failures === 1),
    });
    assert.equal(ended.state, 'completed');
    assert.deepEqual([ended.attempt, ended.failures, renders], [2, 1, 2]);
  });
}
