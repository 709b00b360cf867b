// The conformance suite of work queues: cases for any test runner.

import assert from 'node:assert/strict';
import { setTimeout as realSleep } from 'node:timers/promises';
import { hasCode } from '../../../foundation/error.ts';
import type { Job, JobHandler, JobState, NewJob, WorkQueue } from '../../../work/work-queue.ts';

/** An isolated queue; disposed by the suite. */
export interface OpenedWorkQueue {
  readonly queue: WorkQueue;
  /** Opens the same queue again, as another process does. */
  readonly second: () => Promise<WorkQueue>;
}

export interface WorkQueueFixture {
  /** Returns an empty queue each time. */
  open(): Promise<OpenedWorkQueue>;
}

export interface WorkQueueCase {
  /** The title of the case, a sentence. */
  readonly name: string;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

type Cases = Readonly<Record<string, (opened: OpenedWorkQueue) => Promise<void>>>;

/**
 * The suite of `WorkQueue`.
 *
 * @example
 * import { test } from 'node:test';
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { workQueueConformance } from 'millrace/testing';
 *
 * await using db = await openSqlite('sqlite:a.db');
 * const open = async () => {
 *   const one = () => db.queue('mails');
 *   return { queue: one(), second: async () => one() };
 * };
 * for (const { name, run } of workQueueConformance({ open })) test(name, run);
 */
export function workQueueConformance(fixture: WorkQueueFixture): readonly WorkQueueCase[] {
  return Object.entries(cases).map(([name, run]) => ({
    name,
    async run() {
      const opened = await fixture.open();
      await using queue = opened.queue;
      await run({ ...opened, queue });
    },
  }));
}

const newJob = (id: string, more: Partial<NewJob> = {}): NewJob => ({
  id,
  name: 'send',
  data: { id },
  ...more,
});

/** Waits in real time, because the engine uses the system clock. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 10_000; !(await holds()); left -= 1) {
    assert.ok(left > 0, 'it never came to be');
    await realSleep(1);
  }
}

const inState = (queue: WorkQueue, id: string, state: JobState): Promise<void> =>
  until(async () => (await queue.state(id)) === state);

/** Starts a worker that runs until it is disposed. */
function startWork(
  queue: WorkQueue,
  handle: JobHandler = async () => undefined,
  concurrency = 1,
): AsyncDisposable & { readonly jobs: readonly Job[] } {
  const jobs: Job[] = [];
  const stopping = new AbortController();
  const done = queue.work(
    async (job, context) => {
      jobs.push(job);
      return handle(job, context);
    },
    { concurrency, signal: stopping.signal },
  );
  return {
    jobs,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
    },
  };
}

const cases: Cases = {
  'delivers a job once with its name and data, and completes it': async ({ queue }) => {
    assert.equal(await queue.state('j-1'), undefined);
    await queue.add(newJob('j-1'));
    assert.equal(await queue.state('j-1'), 'waiting');
    await using work = startWork(queue);
    await inState(queue, 'j-1', 'completed');
    assert.deepEqual(work.jobs, [{ id: 'j-1', name: 'send', data: { id: 'j-1' } }]);
  },
  'does not add a known id again, finished or not': async ({ queue, second }) => {
    await using other = await second();
    await queue.add(newJob('j-1'));
    await other.add(newJob('j-1', { data: { id: 'another' } }));
    await using work = startWork(queue);
    await inState(queue, 'j-1', 'completed');
    await other.add(newJob('j-1'));
    await queue.add(newJob('j-2'));
    await inState(queue, 'j-2', 'completed');
    assert.deepEqual(
      work.jobs.map(({ data }) => data),
      [{ id: 'j-1' }, { id: 'j-2' }],
    );
  },
  'finds a job added by another process': async ({ queue, second }) => {
    await using other = await second();
    await using work = startWork(queue);
    await other.add(newJob('j-1'));
    await inState(other, 'j-1', 'completed');
    assert.equal(work.jobs.length, 1);
  },
  'delivers a job again after the delay returned by its handler': async ({ queue }) => {
    let calls = 0;
    await using work = startWork(queue, async () => {
      calls += 1;
      return calls < 3 ? { delayMs: 10 } : undefined;
    });
    await queue.add(newJob('j-1'));
    await inState(queue, 'j-1', 'completed');
    assert.equal(work.jobs.length, 3);
  },
  'a job with a delay waits for its time': async ({ queue }) => {
    await queue.add(newJob('late', { delayMs: 60_000 }));
    await queue.add(newJob('soon', { delayMs: 20 }));
    assert.equal(await queue.state('late'), 'delayed');
    await using work = startWork(queue);
    await inState(queue, 'soon', 'completed');
    assert.deepEqual(
      work.jobs.map(({ id }) => id),
      ['soon'],
    );
  },
  'delivers jobs without priority first, then by ascending priority': async ({ queue }) => {
    await queue.add(newJob('nine', { priority: 9 }));
    await queue.add(newJob('two', { priority: 2 }));
    await queue.add(newJob('none'));
    await using work = startWork(queue);
    await inState(queue, 'nine', 'completed');
    assert.deepEqual(
      work.jobs.map(({ id }) => id),
      ['none', 'two', 'nine'],
    );
  },
  'a handler that throws fails its job, which is not tried again': async ({ queue }) => {
    await using work = startWork(queue, async () => {
      throw new Error('no');
    });
    await queue.add(newJob('j-1'));
    await inState(queue, 'j-1', 'failed');
    assert.equal(work.jobs.length, 1);
  },
  'keeps the configured number of finished jobs': async ({ queue }) => {
    await using work = startWork(queue);
    for (let at = 1; at <= 5; at += 1) {
      await queue.add(newJob(`j-${at}`, { removeOnComplete: 2 }));
      await until(async () => (await queue.state(`j-${at}`)) === 'completed');
    }
    await until(async () => (await queue.state('j-3')) === undefined);
    assert.equal(await queue.state('j-5'), 'completed');
    assert.equal(work.jobs.length, 5);
  },
  'uses the whole concurrency and does not exceed it': async ({ queue }) => {
    let running = 0;
    let most = 0;
    await using work = startWork(
      queue,
      async () => {
        running += 1;
        most = Math.max(most, running);
        await until(() => most === 3);
        await realSleep(1);
        running -= 1;
        return undefined;
      },
      3,
    );
    for (let at = 1; at <= 9; at += 1) await queue.add(newJob(`j-${at}`));
    for (let at = 1; at <= 9; at += 1) await inState(queue, `j-${at}`, 'completed');
    assert.equal(most, 3);
    assert.equal(work.jobs.length, 9);
  },
  'two workers share the jobs, each delivered once': async ({ queue, second }) => {
    await using other = await second();
    await using one = startWork(queue, undefined, 4);
    await using two = startWork(other, undefined, 4);
    const ids = Array.from({ length: 60 }, (_, at) => `j-${at}`);
    await Promise.all(ids.map((id) => queue.add(newJob(id))));
    for (const id of ids) await inState(queue, id, 'completed');
    const handed = [...one.jobs, ...two.jobs].map(({ id }) => id);
    assert.deepEqual(handed.toSorted(), ids.toSorted());
  },
  'stopping the work waits for running jobs': async ({ queue }) => {
    const begun = Promise.withResolvers<void>();
    const may = Promise.withResolvers<void>();
    const work = startWork(queue, async () => {
      begun.resolve();
      await may.promise;
      return undefined;
    });
    await queue.add(newJob('j-1'));
    await begun.promise;
    const ended = work[Symbol.asyncDispose]();
    may.resolve();
    await ended;
    assert.equal(await queue.state('j-1'), 'completed');
  },
  'rejects invalid jobs': async ({ queue }) => {
    const bad: readonly Partial<NewJob>[] = [
      { id: '' },
      { id: 'a:b' },
      { id: '17' },
      { name: '' },
      { priority: 0 },
      { delayMs: -1 },
      { data: { text: 'x'.repeat(70_000) } },
    ];
    for (const each of bad) {
      await assert.rejects(
        () => queue.add({ ...newJob('j-1'), ...each }),
        (error) => hasCode(error, 'JOB_INVALID'),
        JSON.stringify(each).slice(0, 60),
      );
    }
  },
};
