// The conformance suite of delivery queues: cases for any test runner.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../../assertions.ts';
import { toDeliveryJob } from '../../../outbox/delivery-job.ts';
import type {
  DeliveryJob,
  DeliveryQueue,
  WaitingJobs,
  WorkOptions,
} from '../../../outbox/delivery-queue.ts';
import { claimOne, enqueued } from './fixture.ts';
import { memoryOutboxLedger } from '../../../outbox/memory-outbox-ledger.ts';

/** Isolated queues, which the suite disposes. */
export interface OpenedQueue {
  readonly queue: DeliveryQueue;
  /** Opens the same queues again, like another process. */
  second?(): Promise<DeliveryQueue>;
}

export interface DeliveryQueueFixture {
  /** Whether processes share the queues. */
  readonly crossProcess: boolean;
  /** Returns empty queues each time. */
  open(options: { readonly perTenant: boolean }): Promise<OpenedQueue>;
}

export interface DeliveryQueueCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  /** Why the case is skipped. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

type Cases = Readonly<Record<string, (opened: OpenedQueue, queue: DeliveryQueue) => Promise<void>>>;

const waitingMax = 1_000;

function newJob(fields: Partial<DeliveryJob> = {}): DeliveryJob {
  return {
    outboxId: randomUUID(),
    token: '12.7',
    attempt: 1,
    integrationType: 'webhook:partner-x',
    eventType: 'payment.completed.v1',
    tenantId: undefined,
    correlationId: undefined,
    ...fields,
  };
}

const newJobs = (count: number, fields: Partial<DeliveryJob> = {}): DeliveryJob[] =>
  Array.from({ length: count }, () => newJob(fields));

const idsOf = (jobs: readonly DeliveryJob[]): string[] => jobs.map(({ outboxId }) => outboxId);

/** Starts a worker that runs until it is disposed. */
function startWork(
  queue: DeliveryQueue,
  options: Partial<WorkOptions> = {},
  handle: (job: DeliveryJob) => Promise<void> = async () => undefined,
): AsyncDisposable & { readonly jobs: readonly DeliveryJob[]; readonly done: Promise<void> } {
  const jobs: DeliveryJob[] = [];
  const stopping = new AbortController();
  const done = queue.work(
    async (job) => {
      jobs.push(job);
      await handle(job);
    },
    { types: ['*'], concurrency: 1, signal: stopping.signal, ...options },
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

async function waitingIn(queue: DeliveryQueue): Promise<WaitingJobs[]> {
  const all = await Array.fromAsync(queue.waiting());
  return all.filter(({ claims }) => claims.length > 0);
}

async function waitingIds(queue: DeliveryQueue): Promise<string[]> {
  return (await waitingIn(queue)).flatMap(({ claims }) => claims.map(({ id }) => id));
}

const cases: Cases = {
  async 'delivers a job as it was offered'(_opened, queue) {
    const job = newJob({ attempt: 3, tenantId: 't', correlationId: 'c', token: '5' });
    assert.deepEqual(await queue.offer([job], { waitingMax }), ['taken']);
    await using work = startWork(queue);
    await eventually('the message arrived', async () => work.jobs.length === 1);
    const delivered = work.jobs.map((each) => ({ ...each, message: each.message }));
    assert.deepEqual(delivered, [{ ...job, message: undefined }]);
  },

  async 'a message inside its job arrives complete'(_opened, queue) {
    const ledger = memoryOutboxLedger();
    await enqueued(ledger, { payload: { text: 'ä\u0000"' }, tenantId: 't', orderingKey: 'k' });
    const job = toDeliveryJob(await claimOne(ledger), 10_000);
    assert.equal(job.message?.tenantId, 't');
    await queue.offer([job], { waitingMax });
    await using work = startWork(queue);
    await eventually('the message arrived', async () => work.jobs.length === 1);
    assert.deepEqual(work.jobs, [job]);
  },

  async 'delivers the jobs of one queue in the order of their offers'(_opened, queue) {
    const jobs = newJobs(40);
    await queue.offer(jobs.slice(0, 25), { waitingMax });
    await queue.offer(jobs.slice(25), { waitingMax });
    await using work = startWork(queue);
    await eventually('all messages arrived', async () => work.jobs.length === jobs.length);
    assert.deepEqual(idsOf(work.jobs), idsOf(jobs));
  },

  async 'queues a waiting job once; a later claim of its message is another job'(_opened, queue) {
    const job = newJob();
    const again = { ...job, token: '12.8' };
    await queue.offer([job], { waitingMax });
    assert.deepEqual(await queue.offer([job, again], { waitingMax }), ['taken', 'taken']);
    await using work = startWork(queue);
    await eventually('both messages arrived', async () => work.jobs.length === 2);
    assert.deepEqual(
      work.jobs.map(({ token }) => token),
      ['12.7', '12.8'],
    );
  },

  async 'limits the waiting jobs per queue, and a full queue does not affect others'(
    _opened,
    queue,
  ) {
    const jobs = newJobs(5);
    const other = newJob({ integrationType: 'kafka:payments' });
    const offered = await queue.offer([...jobs, other], { waitingMax: 3 });
    assert.deepEqual(offered, ['taken', 'taken', 'taken', 'full', 'full', 'taken']);
    assert.deepEqual(await queue.offer(newJobs(1), { waitingMax: 3 }), ['full']);
    await using work = startWork(queue);
    await eventually('all messages arrived', async () => work.jobs.length === 4);
    await eventually('there is room', async () => {
      const [result] = await queue.offer(newJobs(1), { waitingMax: 3 });
      return result === 'taken';
    });
  },

  async 'lists waiting jobs by queue, without started ones'(_opened, queue) {
    const jobs = newJobs(3);
    const other = newJob({ integrationType: 'kafka:payments', token: 'a:b~c%' });
    await queue.offer([...jobs, other], { waitingMax });
    const before = await waitingIn(queue);
    assert.equal(before.length, 2);
    const { id, token } = { id: other.outboxId, token: other.token };
    assert.ok(before.some(({ claims }) => claims[0]?.id === id && claims[0].token === token));
    assert.deepEqual(new Set(await waitingIds(queue)), new Set([...idsOf(jobs), other.outboxId]));
    const gate = Promise.withResolvers<void>();
    const types = ['webhook:partner-x'];
    await using work = startWork(queue, { types }, () => gate.promise);
    await eventually('one handler started', async () => work.jobs.length === 1);
    assert.equal((await waitingIds(queue)).length, 3);
    assert.ok(!(await waitingIds(queue)).includes(jobs[0]?.outboxId ?? ''));
    gate.resolve();
  },

  async 'a worker gets only jobs that match its types and patterns'(_opened, queue) {
    const types = ['webhook:a', 'webhook:b', 'kafka:a', 'sms', 'a~b:c%7E@d{e}', 'a:b:c', 'a-b-c'];
    const jobs = types.map((integrationType) => newJob({ integrationType }));
    await queue.offer(jobs, { waitingMax });
    for (const [pattern, expected] of [
      ['webhook:*', ['webhook:a', 'webhook:b']],
      ['*@d{e}', ['a~b:c%7E@d{e}']],
      ['a:b:c', ['a:b:c']],
    ] as const) {
      await using work = startWork(queue, { types: [pattern] });
      await eventually('the messages arrived', async () => work.jobs.length === expected.length);
      assert.deepEqual(
        work.jobs.map(({ integrationType }) => integrationType).toSorted(),
        expected,
      );
    }
    await using rest = startWork(queue, { types: ['sms', '*-*', 'kafka:*'] });
    await eventually('the other messages arrived', async () => rest.jobs.length === 3);
    assert.deepEqual(await waitingIds(queue), []);
  },

  async 'finds queues created later by their pattern'(_opened, queue) {
    await using work = startWork(queue, { types: ['webhook:*'] });
    for (const name of ['a', 'b', 'c']) {
      await queue.offer([newJob({ integrationType: `webhook:${name}` })], { waitingMax });
    }
    await eventually('the messages arrived', async () => work.jobs.length === 3);
  },

  async 'limits the concurrent jobs per queue, and no queue blocks another'(_opened, queue) {
    const gate = Promise.withResolvers<void>();
    let now = 0;
    let most = 0;
    await queue.offer(newJobs(10), { waitingMax });
    await queue.offer(newJobs(5, { integrationType: 'sms' }), { waitingMax });
    let others = 0;
    await using work = startWork(queue, { concurrency: 3 }, async ({ integrationType }) => {
      if (integrationType === 'sms') {
        others += 1;
        return;
      }
      now += 1;
      most = Math.max(most, now);
      await gate.promise;
      now -= 1;
    });
    await eventually(
      'three are out, and the others are done',
      async () => now === 3 && others === 5,
    );
    gate.resolve();
    await eventually('all messages arrived', async () => work.jobs.length === 15);
    assert.equal(most, 3);
  },

  async 'an aborted signal stops the worker after the running jobs; the other jobs stay in the queue'(
    _opened,
    queue,
  ) {
    const jobs = newJobs(6);
    await queue.offer(jobs, { waitingMax });
    const gate = Promise.withResolvers<void>();
    const stopping = new AbortController();
    let done = 0;
    let isOver = false;
    const work = startWork(queue, { concurrency: 2, signal: stopping.signal }, async () => {
      await gate.promise;
      done += 1;
    });
    void work.done.then(() => (isOver = true));
    await eventually('two are out', async () => work.jobs.length === 2);
    stopping.abort();
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    gate.resolve();
    await work.done;
    assert.equal(done, work.jobs.length);
    const left = jobs.length - done;
    assert.ok(left > 0);
    await using next = startWork(queue);
    await eventually('the other messages arrived', async () => next.jobs.length === left);
    assert.deepEqual(new Set([...idsOf(work.jobs), ...idsOf(next.jobs)]), new Set(idsOf(jobs)));
  },

  async 'does not redeliver a job whose handler failed'(_opened, queue) {
    const jobs = newJobs(3);
    await queue.offer(jobs, { waitingMax });
    await using work = startWork(queue, {}, async () => {
      throw new Error('no');
    });
    await eventually('all messages arrived', async () => work.jobs.length === 3);
    await queue.offer(newJobs(1), { waitingMax });
    await eventually('the next message arrived', async () => work.jobs.length === 4);
    assert.deepEqual(idsOf(work.jobs).slice(0, 3), idsOf(jobs));
  },

  async 'delivers wake-ups until the listener stops'(_opened, queue) {
    let heard = 0;
    const stop = queue.onNudge(() => void (heard += 1));
    await eventually('the wake-up arrived', async () => {
      queue.nudge();
      return heard > 0;
    });
    stop();
    let other = 0;
    const stopOther = queue.onNudge(() => void (other += 1));
    const before = heard;
    await eventually('the other process gets the wake-up', async () => {
      queue.nudge();
      return other > 0;
    });
    stopOther();
    assert.equal(heard, before);
  },

  async 'disposing the queue stops its workers'(_opened, queue) {
    const work = startWork(queue);
    await queue.offer(newJobs(1), { waitingMax });
    await eventually('it works', async () => work.jobs.length === 1);
    await queue[Symbol.asyncDispose]();
    await work.done;
  },
};

const tenantCases: Cases = {
  async 'each tenant of a type has a separate queue, and so do messages without a tenant'(
    _opened,
    queue,
  ) {
    const tenants = ['a', 'b', 'c@d', undefined];
    const jobs = tenants.flatMap((tenantId) => newJobs(2, { tenantId }));
    await queue.offer(jobs, { waitingMax: 2 });
    assert.equal((await waitingIn(queue)).length, 4);
    assert.deepEqual(await queue.offer(newJobs(1, { tenantId: 'a' }), { waitingMax: 2 }), ['full']);
    const gate = Promise.withResolvers<void>();
    const types = ['webhook:partner-x'];
    await using work = startWork(queue, { types }, ({ tenantId }) =>
      tenantId === 'a' ? gate.promise : Promise.resolve(),
    );
    await eventually('all messages but one arrived', async () => work.jobs.length === 7);
    gate.resolve();
    await eventually('all messages arrived', async () => work.jobs.length === 8);
  },
};

const sharedCases: Cases = {
  async 'two processes never get the same job, and get all of them'(opened, queue) {
    await using second = await secondOf(opened);
    const jobs = newJobs(200);
    await queue.offer(jobs, { waitingMax });
    await using one = startWork(queue, { concurrency: 5 });
    await using other = startWork(second, { concurrency: 5 });
    await eventually(
      'all messages arrived',
      async () => one.jobs.length + other.jobs.length >= 200,
    );
    assert.deepEqual([...idsOf(one.jobs), ...idsOf(other.jobs)].toSorted(), idsOf(jobs).toSorted());
  },

  async 'another process receives a wake-up'(opened, queue) {
    await using second = await secondOf(opened);
    let heard = 0;
    const stop = second.onNudge(() => void (heard += 1));
    await eventually('the wake-up arrived', async () => {
      queue.nudge();
      return heard > 0;
    });
    stop();
  },
};

async function secondOf(opened: OpenedQueue): Promise<DeliveryQueue> {
  return opened.second?.() ?? assert.fail('the fixture has no second connection');
}

/**
 * The cases, for any test runner.
 *
 * @example
 * import { test } from 'node:test';
 * import { memoryDeliveryQueue } from 'millrace/outbox';
 * import { deliveryQueueConformance } from 'millrace/testing';
 *
 * const open = async (options: { readonly perTenant: boolean }) => ({
 *   queue: memoryDeliveryQueue(options),
 * });
 * for (const { name, skip, run } of deliveryQueueConformance({ crossProcess: false, open })) {
 *   test(name, { skip: skip ?? false }, run);
 * }
 */
export function deliveryQueueConformance(
  fixture: DeliveryQueueFixture,
): readonly DeliveryQueueCase[] {
  const skip = fixture.crossProcess ? {} : { skip: 'needs crossProcess' };
  return [
    ...named('jobs', cases, false),
    ...named('tenants', tenantCases, true),
    ...named('several processes', sharedCases, false).map((each) => ({ ...each, ...skip })),
  ];

  function named(topic: string, all: Cases, perTenant: boolean): readonly DeliveryQueueCase[] {
    return Object.entries(all).map(([title, run]) => ({
      name: `${topic}: ${title}`,
      async run() {
        const opened = await fixture.open({ perTenant });
        try {
          await run(opened, opened.queue);
        } finally {
          await opened.queue[Symbol.asyncDispose]();
        }
      },
    }));
  }
}
