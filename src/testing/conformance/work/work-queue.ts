// The conformance suite of work queues: cases for any test runner.

import assert from 'node:assert/strict';
import { hasCode } from '../../../foundation/error.ts';
import type {
  Job,
  JobHandler,
  JobState,
  NewJob,
  WorkOptions,
  WorkQueue,
} from '../../../work/work-queue.ts';
import { eventually } from '../../assertions.ts';

/** Empty queues; disposed by the suite. */
export interface OpenedWorkQueue {
  readonly queue: WorkQueue;
  /** The prefix of the names of the queues, which nothing else uses: `mq:{test}`. */
  readonly prefix: string;
  /** Opens the same queues again, as another process does. */
  readonly second?: (() => Promise<WorkQueue>) | undefined;
}

export interface WorkQueueFixture {
  /** Whether processes share the queues; `open` then returns `second`. */
  readonly crossProcess: boolean;
  /** Returns empty queues each time. */
  open(): Promise<OpenedWorkQueue>;
}

export interface WorkQueueCase {
  /** The title of the case, a sentence. */
  readonly name: string;
  /** Why the case is skipped. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

/**
 * The suite of `WorkQueue`.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { workQueueConformance } from 'millrace/testing';
 *
 * const open = async () => ({ queue: openMemory().queue, prefix: 'mq:{test}' });
 * for (const { name, skip, run } of workQueueConformance({ crossProcess: false, open })) {
 *   test(name, { skip: skip ?? false }, run);
 * }
 */
export function workQueueConformance(fixture: WorkQueueFixture): readonly WorkQueueCase[] {
  const opened = async (run: (rig: Rig) => Promise<void>): Promise<void> => {
    const { prefix, second, ...rest } = await fixture.open();
    await using queue = rest.queue;
    const open = second ?? (() => assert.fail('the fixture has no second connection'));
    await run({ queue, mails: `${prefix}:mails`, prefix, second: async () => open() });
  };
  const skip = fixture.crossProcess ? undefined : 'needs crossProcess';
  return [
    ...Object.entries(cases).map(([name, run]) => ({ name, run: () => opened(run) })),
    ...Object.entries(sharedCases).map(([name, run]) => ({ name, skip, run: () => opened(run) })),
  ];
}

interface Rig {
  readonly queue: WorkQueue;
  readonly prefix: string;
  /** The name of a queue. */
  readonly mails: string;
  readonly second: () => Promise<WorkQueue>;
}

type Cases = Readonly<Record<string, (rig: Rig) => Promise<void>>>;

const newJob = (id: string, more: Partial<NewJob> = {}): NewJob => ({
  id,
  name: 'send',
  data: { id },
  ...more,
});

const newJobs = (count: number): readonly NewJob[] =>
  Array.from({ length: count }, (_, at) => newJob(`j-${at}`));

const idsOf = (jobs: readonly { readonly id: string }[]): string[] => jobs.map(({ id }) => id);

const inState = ({ queue, mails }: Rig, id: string, state: JobState): Promise<void> =>
  eventually(`${id} is ${state}`, async () => (await queue.state(mails, id)) === state);

async function waitingIn(queue: WorkQueue, pattern: string) {
  const found = await Array.fromAsync(queue.waiting(pattern));
  const sorted = found.map(({ queue: name, ids }) => [name, ids.toSorted()] as const);
  return sorted.filter(([, ids]) => ids.length > 0).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

interface Worker extends AsyncDisposable {
  readonly jobs: readonly Job[];
  readonly done: Promise<void>;
}

/** Starts a worker that runs until it is disposed. */
function startWork(
  { queue, mails }: Pick<Rig, 'queue' | 'mails'>,
  handle: JobHandler = async () => undefined,
  options: Partial<WorkOptions> = {},
): Worker {
  const jobs: Job[] = [];
  const stopping = new AbortController();
  const done = queue.work(
    async (job, context) => {
      jobs.push(job);
      return handle(job, context);
    },
    { queues: [mails], concurrency: 1, signal: stopping.signal, ...options },
  );
  return {
    jobs,
    done,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
    },
  };
}

const cases: Cases = {
  async 'delivers a job once with its queue, name and data, and completes it'(rig) {
    const { queue, mails } = rig;
    assert.equal(await queue.state(mails, 'j-1'), undefined);
    assert.equal(await queue.add(mails, [newJob('j-1')]), 1);
    assert.equal(await queue.state(mails, 'j-1'), 'waiting');
    await using work = startWork(rig);
    await inState(rig, 'j-1', 'completed');
    assert.deepEqual(work.jobs, [{ queue: mails, id: 'j-1', name: 'send', data: { id: 'j-1' } }]);
  },

  async 'does not add a known id again, finished or not'(rig) {
    const { queue, mails } = rig;
    await queue.add(mails, [newJob('j-1')]);
    assert.equal(await queue.add(mails, [newJob('j-1', { data: { id: 'another' } })]), 1);
    await using work = startWork(rig);
    await inState(rig, 'j-1', 'completed');
    await queue.add(mails, [newJob('j-1'), newJob('j-2')]);
    await inState(rig, 'j-2', 'completed');
    assert.deepEqual(
      work.jobs.map(({ data }) => data),
      [{ id: 'j-1' }, { id: 'j-2' }],
    );
  },

  async 'delivers the jobs of one queue in the order in which they were added'(rig) {
    const jobs = newJobs(40);
    await rig.queue.add(rig.mails, jobs.slice(0, 25));
    await rig.queue.add(rig.mails, jobs.slice(25));
    await using work = startWork(rig);
    await inState(rig, 'j-39', 'completed');
    assert.deepEqual(idsOf(work.jobs), idsOf(jobs));
  },

  async 'delivers a job again after the delay returned by its handler'(rig) {
    let calls = 0;
    await using work = startWork(rig, async () => {
      calls += 1;
      return calls < 3 ? { delayMs: 10 } : undefined;
    });
    await rig.queue.add(rig.mails, [newJob('j-1')]);
    await inState(rig, 'j-1', 'completed');
    assert.equal(work.jobs.length, 3);
  },

  async 'a job with a delay waits for its time'(rig) {
    const { queue, mails } = rig;
    const jobs = [newJob('late', { delayMs: 60_000 }), newJob('soon', { delayMs: 20 })];
    await queue.add(mails, jobs);
    assert.equal(await queue.state(mails, 'late'), 'delayed');
    await using work = startWork(rig);
    await inState(rig, 'soon', 'completed');
    assert.deepEqual(idsOf(work.jobs), ['soon']);
  },

  async 'delivers jobs without priority first, then by ascending priority'(rig) {
    const { queue, mails } = rig;
    const jobs = [newJob('nine', { priority: 9 }), newJob('two', { priority: 2 }), newJob('none')];
    await queue.add(mails, jobs);
    assert.deepEqual(await waitingIn(queue, mails), [[mails, ['nine', 'none', 'two']]]);
    assert.equal(await queue.depth(mails), 3);
    await queue.add(mails, [newJob('later', { delayMs: 600_000 })]);
    assert.equal(await queue.depth(mails), 3, 'delayed jobs are not due');
    await using work = startWork(rig);
    await inState(rig, 'nine', 'completed');
    assert.equal(await queue.depth(mails), 0);
    assert.deepEqual(idsOf(work.jobs), ['none', 'two', 'nine']);
  },

  async 'a handler that throws fails its job, which is not tried again'(rig) {
    await using work = startWork(rig, async ({ id }) => {
      if (id === 'j-0') throw new Error('no');
      return undefined;
    });
    await rig.queue.add(rig.mails, newJobs(2));
    await inState(rig, 'j-1', 'completed');
    assert.equal(await rig.queue.state(rig.mails, 'j-0'), 'failed');
    assert.deepEqual(idsOf(work.jobs), ['j-0', 'j-1']);
  },

  async 'keeps the configured number of finished jobs'(rig) {
    const { queue, mails } = rig;
    await using work = startWork(rig);
    for (let at = 1; at <= 5; at += 1) {
      await queue.add(mails, [newJob(`j-${at}`, { removeOnComplete: 2 })]);
      await inState(rig, `j-${at}`, 'completed');
    }
    await eventually(async () => (await queue.state(mails, 'j-3')) === undefined);
    assert.equal(await queue.state(mails, 'j-5'), 'completed');
    await queue.add(mails, [newJob('j-6', { removeOnComplete: 0 }), newJob('j-7')]);
    await inState(rig, 'j-7', 'completed');
    assert.equal(await queue.state(mails, 'j-6'), undefined);
    assert.equal(work.jobs.length, 7);
  },

  async 'limits the waiting jobs of a queue, and takes the first ones that fit'(rig) {
    const { queue, mails, prefix } = rig;
    assert.equal(await queue.add(mails, newJobs(5), { waitingMax: 3 }), 3);
    assert.equal(await queue.add(mails, [newJob('more')], { waitingMax: 3 }), 0);
    assert.equal(await queue.add(`${prefix}:letters`, newJobs(1), { waitingMax: 3 }), 1);
    assert.deepEqual(await waitingIn(queue, mails), [[mails, ['j-0', 'j-1', 'j-2']]]);
    await using work = startWork(rig);
    await inState(rig, 'j-2', 'completed');
    assert.equal(await queue.add(mails, [newJob('more')], { waitingMax: 3 }), 1);
    await inState(rig, 'more', 'completed');
    assert.deepEqual(idsOf(work.jobs), ['j-0', 'j-1', 'j-2', 'more']);
  },

  async 'lists waiting jobs by queue, without started ones'(rig) {
    const { queue, mails, prefix } = rig;
    const letters = `${prefix}:letters`;
    await queue.add(mails, newJobs(3));
    await queue.add(letters, [newJob('outbox~1~a%7E.b')]);
    const gate = Promise.withResolvers<undefined>();
    await using work = startWork(rig, () => gate.promise);
    await eventually('one handler started', async () => work.jobs.length === 1);
    assert.deepEqual(await waitingIn(queue, `${prefix}:*`), [
      [letters, ['outbox~1~a%7E.b']],
      [mails, ['j-1', 'j-2']],
    ]);
    assert.deepEqual(await waitingIn(queue, `${prefix}:other-*`), []);
    gate.resolve(undefined);
  },

  async 'a worker gets only jobs of its queues and patterns'(rig) {
    const { queue, prefix } = rig;
    const names = ['mail~a', 'mail~b', 'letter~a', 'mail%40c@d', 'call-1'];
    for (const name of names) await queue.add(`${prefix}:${name}`, [newJob(name)]);
    for (const [pattern, expected] of [
      ['mail~*', ['mail~a', 'mail~b']],
      ['*@d', ['mail%40c@d']],
      ['call-1', ['call-1']],
    ] as const) {
      await using work = startWork(rig, undefined, { queues: [`${prefix}:${pattern}`] });
      await eventually('the jobs arrived', async () => work.jobs.length === expected.length);
      assert.deepEqual(idsOf(work.jobs).toSorted(), expected);
      assert.deepEqual(
        work.jobs.map((job) => job.queue),
        work.jobs.map(({ id }) => `${prefix}:${id}`),
      );
    }
    const letters = `${prefix}:letter~a`;
    assert.deepEqual(await waitingIn(queue, `${prefix}:*`), [[letters, ['letter~a']]]);
  },

  async 'finds queues created later by their pattern'(rig) {
    const { queue, prefix } = rig;
    await using work = startWork(rig, undefined, { queues: [`${prefix}:mail~*`] });
    for (const name of ['a', 'b', 'c']) await queue.add(`${prefix}:mail~${name}`, newJobs(1));
    await eventually('the jobs arrived', async () => work.jobs.length === 3);
  },

  async 'uses the whole concurrency of a queue, and no queue blocks another'(rig) {
    const { queue, mails, prefix } = rig;
    const gate = Promise.withResolvers<void>();
    let [running, most, others] = [0, 0, 0];
    const handle: JobHandler = async (job) => {
      if (job.queue !== mails) {
        others += 1;
        return undefined;
      }
      running += 1;
      most = Math.max(most, running);
      await gate.promise;
      running -= 1;
      return undefined;
    };
    await queue.add(mails, newJobs(10));
    await queue.add(`${prefix}:letters`, newJobs(5));
    await using work = startWork(rig, handle, { queues: [`${prefix}:*`], concurrency: 3 });
    await eventually('three run, and the others are done', async () => running + others === 8);
    gate.resolve();
    await eventually('all jobs arrived', async () => work.jobs.length === 15);
    assert.equal(most, 3);
  },

  async 'an aborted signal stops the worker after the running jobs; the other jobs stay in the queue'(
    rig,
  ) {
    const jobs = newJobs(6);
    await rig.queue.add(rig.mails, jobs);
    const gate = Promise.withResolvers<undefined>();
    let isOver = false;
    const work = startWork(rig, () => gate.promise, { concurrency: 2 });
    await eventually('two handlers started', async () => work.jobs.length === 2);
    const ended = work[Symbol.asyncDispose]().then(() => (isOver = true));
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    gate.resolve(undefined);
    await ended;
    assert.ok(work.jobs.length < jobs.length);
    await using next = startWork(rig);
    await inState(rig, 'j-5', 'completed');
    assert.deepEqual([...idsOf(work.jobs), ...idsOf(next.jobs)].toSorted(), idsOf(jobs));
  },

  async 'delivers nudges of a channel until the listener stops'({ queue, prefix }) {
    const channel = `${prefix}:nudge`;
    let [first, second, other] = [0, 0, 0];
    const stopFirst = queue.onNudge(channel, () => void (first += 1));
    const stopOther = queue.onNudge(`${prefix}:other`, () => void (other += 1));
    await eventually('the nudge arrived', async () => {
      queue.nudge(channel);
      return first > 0;
    });
    stopFirst();
    const before = first;
    const stopSecond = queue.onNudge(channel, () => void (second += 1));
    await eventually('the second listener gets a nudge', async () => {
      queue.nudge(channel);
      return second > 0;
    });
    assert.deepEqual([first, other], [before, 0]);
    stopSecond();
    stopOther();
  },

  async 'disposing the queue stops its workers'(rig) {
    const work = startWork(rig);
    await rig.queue.add(rig.mails, newJobs(1));
    await eventually('it works', async () => work.jobs.length === 1);
    await rig.queue[Symbol.asyncDispose]();
    await work.done;
  },

  async 'rejects invalid jobs and names, and adds none of their jobs'({ queue, mails }) {
    const bad: readonly Partial<NewJob>[] = [
      { id: '' },
      { id: 'a:b' },
      { id: '17' },
      { name: '' },
      { priority: 0 },
      { delayMs: -1 },
      { data: { text: 'x'.repeat(70_000) } },
    ];
    const isInvalid = (error: unknown): boolean => hasCode(error, 'JOB_INVALID');
    for (const each of bad) {
      const jobs = [newJob('j-1'), { ...newJob('j-2'), ...each }];
      await assert.rejects(
        () => queue.add(mails, jobs),
        isInvalid,
        JSON.stringify(each).slice(0, 60),
      );
    }
    assert.equal(await queue.state(mails, 'j-1'), undefined);
    const { signal } = new AbortController();
    for (const name of ['', 'a:', 'a{b}']) {
      await assert.rejects(() => queue.add(name, [newJob('j-1')]), isInvalid, name);
      const work = { queues: [name], concurrency: 1, signal };
      await assert.rejects(() => queue.work(async () => undefined, work), isInvalid, name);
    }
  },
};

const sharedCases: Cases = {
  async 'a known id of another process is not added again, and its job is found'(rig) {
    const { mails } = rig;
    await using other = await rig.second();
    await using work = startWork(rig);
    await other.add(mails, [newJob('j-1')]);
    await rig.queue.add(mails, [newJob('j-1'), newJob('j-2')]);
    await inState({ ...rig, queue: other }, 'j-2', 'completed');
    assert.deepEqual(idsOf(work.jobs), ['j-1', 'j-2']);
  },

  async 'two processes share the jobs, each delivered once'(rig) {
    const { queue, mails } = rig;
    await using other = await rig.second();
    await using one = startWork(rig, undefined, { concurrency: 4 });
    await using two = startWork({ queue: other, mails }, undefined, { concurrency: 4 });
    const jobs = newJobs(60);
    await Promise.all(jobs.map((job) => queue.add(mails, [job])));
    for (const id of idsOf(jobs)) await inState(rig, id, 'completed');
    const delivered = [...idsOf(one.jobs), ...idsOf(two.jobs)];
    assert.deepEqual(delivered.toSorted(), idsOf(jobs).toSorted());
  },
};
