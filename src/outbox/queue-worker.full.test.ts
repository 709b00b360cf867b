// Dispatcher and worker together, on a ledger and queues in memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, rejectsWith } from '../testing/assertions.ts';
import { openMemory } from '../engines/memory/index.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import type { Deliver } from './attempt-delivery.ts';
import { enqueued, newMessage } from '../testing/conformance/outbox/fixture.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { OutboxClaim } from './outbox-message.ts';
import { createQueueDispatcher, type QueueDispatcherOptions } from './queue-dispatcher.ts';
import { createQueueWorker, type QueueWorkerOptions } from './queue-worker.ts';

const schedule = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
const never = new Promise<void>(() => undefined);
const memoryQueue = (clock?: Clock): WorkQueue => openMemory({ clock }).queue;

interface Rig extends AsyncDisposable {
  /** Resolves while dispatcher and worker run. */
  eventually(what: string, holds: () => Promise<boolean>): Promise<void>;
  /** Resolves when all messages are settled. */
  settled(): Promise<void>;
}

async function start(
  ledger: OutboxLedger,
  deliver: Deliver,
  more: {
    readonly queue?: WorkQueue;
    readonly dispatcher?: Partial<QueueDispatcherOptions>;
    readonly worker?: Partial<QueueWorkerOptions>;
  } = {},
): Promise<Rig> {
  const { queue = memoryQueue() } = more;
  const dispatcher = createQueueDispatcher({
    ledger,
    queue,
    tickIntervalMs: 5,
    ...more.dispatcher,
  });
  const worker = createQueueWorker({ ledger, queue, deliver, schedule, ...more.worker });
  await dispatcher.start();
  await worker.start();
  const happens: Rig['eventually'] = (what, holds) =>
    eventually(what, async () => {
      assert.deepEqual([dispatcher.state, worker.state], ['started', 'started']);
      return holds();
    });
  return {
    eventually: happens,
    settled: () =>
      happens('everything is settled', async () => {
        const { PENDING, CLAIMED, FAILED } = await ledger.counts();
        return PENDING + CLAIMED + FAILED === 0;
      }),
    async [Symbol.asyncDispose]() {
      await dispatcher.stop();
      await worker.stop();
    },
  };
}

test('sends everything once, with the message as the ledger has it', async () => {
  const ledger = openMemory().outbox;
  const ids = await enqueued(
    ledger,
    ...Array.from({ length: 300 }, (_, at) => ({
      integrationType: `webhook:p${at % 3}`,
      payload: { at, text: 'x'.repeat(at % 2 === 0 ? 10 : 5_000) },
      headers: { h: 1 },
    })),
  );
  const sent: string[] = [];
  await using rig = await start(ledger, async (message, { attempt }) => {
    const { status, lockedAt, lockedBy, updatedAt, token, starts, ...rest } = message;
    assert.deepEqual([status, attempt, starts], ['CLAIMED', 1, 1]);
    assert.ok(lockedAt && lockedBy && updatedAt && token);
    const found = await ledger.find(message.id);
    assert.deepEqual({ ...found, ...rest }, found);
    sent.push(message.id);
  });
  await rig.settled();
  assert.deepEqual(sent.toSorted(), ids.toSorted());
  assert.equal((await ledger.counts()).SENT, 300);
});

test('tick adds jobs of up to its limit of messages, and leaves the messages of full queues in the ledger', async () => {
  const ledger = openMemory().outbox;
  const queue = memoryQueue();
  await enqueued(ledger, ...Array.from({ length: 5 }, () => ({})), { integrationType: 'kafka:x' });
  const dispatcher = createQueueDispatcher({ ledger, queue, waitingMax: 3 });
  assert.equal(await dispatcher.tick(2), 2);
  // One more fits into the queue of the webhooks, and one into the other queue.
  assert.equal(await dispatcher.tick(), 2);
  const { CLAIMED, PENDING } = await ledger.counts();
  assert.deepEqual({ CLAIMED, PENDING }, { CLAIMED: 4, PENDING: 2 });
  assert.equal(dispatcher.state, 'stopped');
  const failing = { ...queue, add: () => Promise.reject(new Error('away')) };
  const other = createQueueDispatcher({ ledger: openMemory().outbox, queue: failing });
  assert.equal(await other.tick(), 0);
  const later = openMemory().outbox;
  await enqueued(later, {});
  await assert.rejects(createQueueDispatcher({ ledger: later, queue: failing }).tick(), /away/);
  assert.equal((await later.counts()).PENDING, 1);
});

test('each tenant of a type has a separate queue, and so do messages without a tenant', async () => {
  const ledger = openMemory().outbox;
  const queue = memoryQueue();
  const tenants = ['a', 'b', 'c@d', undefined];
  await enqueued(ledger, ...tenants.flatMap((tenantId) => [{ tenantId }, { tenantId }]));
  const gate = Promise.withResolvers<void>();
  const sent: string[] = [];
  await using rig = await start(
    ledger,
    async ({ tenantId }) => {
      if (tenantId === 'a') await gate.promise;
      sent.push(String(tenantId));
    },
    {
      queue,
      dispatcher: { perTenant: true },
      worker: { perTenant: true, types: ['webhook:partner-x'], concurrency: 1 },
    },
  );
  await rig.eventually('the other tenants have their messages', async () => sent.length === 6);
  const prefix = 'mq:{outbox}:outbox-webhook~partner-x';
  const waiting = (await Array.fromAsync(queue.waiting('mq:{outbox}:*'))).map(
    ({ queue: name, ids }) => [name, ids.length],
  );
  const names = ['', 'a', 'b', 'c%40d'].map((tenant) => `${prefix}@${tenant}`);
  assert.deepEqual(waiting, [
    [names[0], 0],
    [names[1], 1],
    [names[2], 0],
    [names[3], 0],
  ]);
  gate.resolve();
  await rig.settled();
  const [message] = await ledger.list({ tenantId: 'c@d' });
  assert.equal(message?.jobs?.[0]?.queue, 'outbox-webhook~partner-x@c%40d');
});

test('a failed message is retried through the ledger, and is dead after its last attempt', async () => {
  const ledger = openMemory().outbox;
  const dead: string[] = [];
  await enqueued(ledger, { sourceEventId: 'later' }, { sourceEventId: 'never', maxAttempts: 3 });
  const attempts: string[] = [];
  await using rig = await start(
    ledger,
    async ({ sourceEventId }, { attempt }) => {
      attempts.push(`${sourceEventId} ${attempt}`);
      if (sourceEventId === 'never' || attempt < 3) return { kind: 'retry', error: 'HTTP 503' };
      return { kind: 'sent' };
    },
    { worker: { onDead: (message) => void dead.push(message.sourceEventId) } },
  );
  await rig.settled();
  const expected = ['later 1', 'later 2', 'later 3', 'never 1', 'never 2', 'never 3'];
  assert.deepEqual(attempts.toSorted(), expected);
  assert.deepEqual(dead, ['never']);
});

test('messages of one key go out in order, each as soon as the one before is settled', async () => {
  const ledger = openMemory().outbox;
  await ledger.enqueueMany(
    Array.from({ length: 60 }, (_, at) =>
      newMessage({ orderingKey: `k${at % 3}`, payload: { at } }),
    ),
  );
  const seen: number[] = [];
  // Only a nudge of the worker can wake the dispatcher in time.
  const dispatcher = { tickIntervalMs: 3_600_000 };
  await using rig = await start(
    ledger,
    async ({ payload }) => void seen.push(Number(payload['at'])),
    { dispatcher },
  );
  await rig.settled();
  for (const key of [0, 1, 2]) {
    const ofKey = seen.filter((at) => at % 3 === key);
    assert.deepEqual(
      ofKey,
      ofKey.toSorted((a, b) => a - b),
    );
    assert.equal(ofKey.length, 20);
  }
});

test('a job that runs twice with the same token is sent once', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {});
  const inner = memoryQueue();
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const queue: WorkQueue = {
    ...inner,
    // BullMQ also delivers a job again if its worker seems to have died.
    work: (handle, options) =>
      inner.work(async (job, context) => {
        const first = handle(job, context);
        await begun.promise;
        await handle(job, context);
        gate.resolve();
        await first;
        return handle(job, context);
      }, options),
  };
  let sent = 0;
  const deliver = async (): Promise<void> => {
    sent += 1;
    begun.resolve();
    if (sent === 1) await gate.promise;
  };
  await using rig = await start(ledger, deliver, { queue });
  await rig.settled();
  assert.equal(sent, 1);
});

test('a full queue accepts no more jobs, and other queues continue', async () => {
  const ledger = openMemory().outbox;
  await enqueued(
    ledger,
    ...Array.from({ length: 500 }, () => ({ integrationType: 'webhook:slow' })),
  );
  const queue = memoryQueue();
  let others = 0;
  await using rig = await start(
    ledger,
    async ({ integrationType }) => {
      if (integrationType === 'webhook:slow') await never;
      others += 1;
    },
    { queue, dispatcher: { waitingMax: 20 }, worker: { concurrency: 4, drainMs: 1 } },
  );
  await enqueued(ledger, ...Array.from({ length: 50 }, () => ({ integrationType: 'sms' })));
  await rig.eventually('the others are sent', async () => others === 50);
  const waiting = await Array.fromAsync(queue.waiting('mq:{outbox}:*'));
  assert.ok(waiting.every(({ ids }) => ids.length <= 20));
  const { CLAIMED, PENDING } = await ledger.counts();
  assert.ok(CLAIMED <= 24 + 100, `${CLAIMED} are claimed`);
  assert.ok(PENDING >= 500 - 124, `${PENDING} are pending`);
});

test('a backlog of one tenant delays another by at most waitingMax jobs', async () => {
  const ledger = openMemory().outbox;
  for (let at = 0; at < 3; at += 1) {
    await enqueued(ledger, ...Array.from({ length: 1_000 }, () => ({ tenantId: 'noisy' })));
  }
  const limits = { waitingMax: 60, batchSize: 40 };
  let sent = 0;
  let sentBefore = 0;
  const quiet = Promise.withResolvers<number>();
  await using rig = await start(
    ledger,
    async ({ tenantId }) => {
      sent += 1;
      await new Promise(setImmediate);
      if (tenantId === 'calm') quiet.resolve(sent - sentBefore);
    },
    { dispatcher: limits, worker: { concurrency: 10 } },
  );
  await rig.eventually('the backlog is worked on', async () => sent > 100);
  sentBefore = sent;
  await enqueued(ledger, { tenantId: 'calm' });
  const waitedFor = await quiet.promise;
  assert.ok(waitedFor < 400, `${waitedFor} of the other one's were before it`);
});

test('leases of waiting jobs are extended, so that a slow queue is processed', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  const ids = await enqueued(ledger, ...Array.from({ length: 6 }, () => ({})));
  const sent: string[] = [];
  const leaseMs = 3_000;
  await using rig = await start(
    ledger,
    async ({ id, starts }) => {
      // Each takes half of a lease: the last one waits for several.
      await clock.sleep(1_400);
      sent.push(`${id} ${starts}`);
    },
    {
      queue: memoryQueue(clock),
      dispatcher: { clock, leaseMs, tickIntervalMs: 100 },
      worker: { clock, leaseMs, concurrency: 1 },
    },
  );
  await rig.eventually('all are sent', async () => {
    await clock.advance(100);
    return (await ledger.counts()).SENT === 6;
  });
  // Claimed once: none was considered lost.
  assert.deepEqual(
    sent,
    ids.map((id) => `${id} 1`),
  );
});

test('the lease of an attempt that runs longer than it is extended, and the message is sent once', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  const leaseMs = 3_000;
  let calls = 0;
  await using rig = await start(
    ledger,
    async () => {
      calls += 1;
      await clock.sleep(10 * leaseMs);
    },
    {
      queue: memoryQueue(clock),
      dispatcher: { clock, leaseMs, tickIntervalMs: 100 },
      worker: { clock, leaseMs, timeoutMs: 20 * leaseMs },
    },
  );
  await rig.eventually('it is sent', async () => {
    await clock.advance(100);
    return (await ledger.counts()).SENT === 1;
  });
  assert.equal(calls, 1);
});

test('an attempt whose claim was lost is aborted, and its outcome is not stored', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  const aborted = Promise.withResolvers<unknown>();
  const settled: string[] = [];
  const watched: OutboxLedger = {
    ...ledger,
    async settle(outcomes) {
      settled.push(...outcomes.map(({ kind }) => kind));
      return ledger.settle(outcomes);
    },
  };
  const queue = memoryQueue(clock);
  const begun = Promise.withResolvers<OutboxClaim>();
  const worker = createQueueWorker({
    ledger: watched,
    queue,
    clock,
    leaseMs: 3_000,
    async deliver({ id, token }, { signal }) {
      signal.addEventListener('abort', () => aborted.resolve(signal.reason));
      begun.resolve({ id, token });
      await aborted.promise;
    },
  });
  const dispatcher = createQueueDispatcher({ ledger, queue, clock });
  await dispatcher.start();
  await worker.start();
  const claim = await begun.promise;
  await dispatcher.stop();
  // Another process has taken over the claim, as after a freeze of this one.
  const [other] = await ledger.renew([claim], { workerId: 'other' });
  assert.ok(typeof other === 'object');
  await clock.advance(1_000);
  await aborted.promise;
  await eventually('the attempt is over', async () => worker.inFlight === 0);
  await worker.stop();
  assert.deepEqual(settled, []);
  assert.equal(await ledger.markSent(other), 'settled');
});

test('a job of another program is logged and completed', async () => {
  const queue = memoryQueue();
  const logs: object[] = [];
  const log = (fields: object): void => void logs.push(fields);
  const observer = { log: { debug: log, info: log, warn: log, error: log } };
  await using rig = await start(openMemory().outbox, async () => assert.fail('sent'), {
    queue,
    worker: { observer },
  });
  await queue.add('mq:{outbox}:outbox-sms', [{ id: 'strange', name: 'send', data: { a: 1 } }]);
  await rig.eventually('it is logged', async () => logs.length === 1);
  assert.deepEqual(logs, [{ queue: 'mq:{outbox}:outbox-sms', jobId: 'strange' }]);
});

test('if the queues lose all jobs, the messages are sent after their leases expire', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {}, {});
  const lossy = memoryQueue(clock);
  const dispatcher = createQueueDispatcher({ ledger, queue: lossy, clock, leaseMs: 1_000 });
  await dispatcher.start();
  await eventually('they wait', async () => (await ledger.counts()).CLAIMED === 2);
  await dispatcher.stop();
  await lossy[Symbol.asyncDispose]();
  let starts = 0;
  await using rig = await start(ledger, async (message) => void (starts += message.starts), {
    queue: memoryQueue(clock),
    dispatcher: { clock },
    worker: { clock },
  });
  await rig.eventually('they are sent', async () => {
    await clock.advance(100);
    return (await ledger.counts()).SENT === 2;
  });
  assert.equal(starts, 4);
  assert.ok((await ledger.list({})).every(({ attempts }) => attempts === 0));
});

test('an outage of the queues counts no attempts and keeps no claims', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {}, {}, {});
  const inner = memoryQueue();
  let calls = 0;
  const queue: WorkQueue = {
    ...inner,
    async add(...args) {
      calls += 1;
      if (calls <= 2) throw new MillraceError('STORE_UNAVAILABLE', 'unavailable');
      return inner.add(...args);
    },
  };
  const starts: number[] = [];
  await using rig = await start(ledger, async (message) => void starts.push(message.starts), {
    queue,
  });
  await rig.eventually('the queue was unavailable', async () => calls > 0);
  await rig.settled();
  assert.deepEqual(starts, [1, 1, 1]);
});

test('workers keep their outcomes while the ledger is unavailable', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, ...Array.from({ length: 10 }, () => ({})));
  let calls = 0;
  let sent = 0;
  const away = (): void => {
    calls += 1;
    if (calls % 2 === 1) throw new MillraceError('STORE_UNAVAILABLE', 'unavailable');
  };
  const flaky: OutboxLedger = {
    ...ledger,
    async renew(claims, request) {
      away();
      return ledger.renew(claims, request);
    },
    async settle(outcomes) {
      away();
      return ledger.settle(outcomes);
    },
  };
  await using rig = await start(flaky, async () => void (sent += 1));
  await rig.settled();
  assert.equal(sent, 10);
  assert.equal((await ledger.counts()).SENT, 10);
});

test('a paused destination gets no message, although jobs wait for it', async () => {
  const ledger = openMemory().outbox;
  const queue = memoryQueue();
  await enqueued(ledger, {}, {});
  const dispatcher = createQueueDispatcher({ ledger, queue });
  await dispatcher.start();
  await eventually('they wait', async () => (await ledger.counts()).CLAIMED === 2);
  await dispatcher.stop();
  await ledger.pause('webhook:partner-x', 'ada');
  let sent = 0;
  await using rig = await start(ledger, async () => void (sent += 1), { queue });
  await rig.eventually('they are free', async () => (await ledger.counts()).PENDING === 2);
  assert.equal(sent, 0);
  await ledger.resume('webhook:partner-x');
  await rig.settled();
  assert.equal(sent, 2);
});

test('stopping a worker waits for running attempts, and cancels them after the drain time', async () => {
  const ledger = openMemory().outbox;
  await enqueued(ledger, {}, {});
  const queue = memoryQueue();
  const dispatcher = createQueueDispatcher({ ledger, queue });
  await dispatcher.start();
  let calls = 0;
  const gate = Promise.withResolvers<void>();
  const worker = createQueueWorker({
    ledger,
    queue,
    drainMs: 20,
    deliver: () => {
      calls += 1;
      return calls === 1 ? gate.promise : never;
    },
  });
  await worker.start();
  await eventually('both are out', async () => calls === 2 && worker.inFlight === 2);
  const stopped = worker.stop();
  gate.resolve();
  await stopped;
  await dispatcher.stop();
  const { SENT, CLAIMED, PENDING } = await ledger.counts();
  assert.deepEqual([SENT, CLAIMED, PENDING], [1, 0, 1]);
  assert.equal(worker.inFlight, 0);
});

test('operations, phases and counts have the names of the document', async () => {
  const ledger = openMemory().outbox;
  const names = new Set<string>();
  const logs = new Set<string>();
  const log = (fields: object): void => {
    const { operation, phase } = fields as { operation?: string; phase?: string };
    logs.add(`${operation} ${phase}`);
    assert.doesNotMatch(JSON.stringify(fields), /hush/);
  };
  const observer = {
    count: (name: string) => void names.add(name),
    gauge: (name: string) => void names.add(name),
    record: (name: string) => void names.add(name),
    log: { debug: log, info: log, warn: log, error: log },
  };
  await enqueued(ledger, { payload: { secret: 'hush' } }, { sourceEventId: 'bad', maxAttempts: 2 });
  await using rig = await start(
    ledger,
    async ({ sourceEventId }) =>
      sourceEventId === 'bad' ? { kind: 'retry', error: 'no' } : { kind: 'sent' },
    { dispatcher: { observer, leaseMs: 30 }, worker: { observer } },
  );
  await rig.settled();
  await rig.eventually('the depth is reported', async () => names.has('queue_depth'));
  for (const name of ['claimed', 'jobs', 'sent', 'failed', 'dead']) {
    assert.ok(names.has(`outbox_${name}_total`), name);
  }
  for (const phase of ['START', 'SENT', 'FAILED', 'DEAD']) {
    assert.ok(logs.has(`OUTBOX_DELIVER ${phase}`), phase);
  }
  assert.ok(logs.has('OUTBOX_ENQUEUE_JOB SUCCESS'));
});

test('the lease of an attempt that lasts longer is renewed, and a lost claim cancels it', async () => {
  const clock = fakeClock();
  const ledger = openMemory({ clock }).outbox;
  await enqueued(ledger, {});
  const attempts: { readonly claim: OutboxClaim; readonly signal: AbortSignal }[] = [];
  const deliver: Deliver = async (claim, { signal }) => {
    attempts.push({ claim, signal });
    await never;
  };
  const timed = { clock, leaseMs: 3_000 };
  await using rig = await start(ledger, deliver, {
    dispatcher: { ...timed, tickIntervalMs: 100 },
    worker: { ...timed, drainMs: 1 },
  });
  await rig.eventually('it is out', async () => {
    await clock.advance(100);
    return attempts.length === 1;
  });
  await clock.advance(10_000);
  const [{ claim, signal } = assert.fail('no attempt')] = attempts;
  assert.deepEqual([attempts.length, signal.aborted], [1, false]);
  // Another owner takes the claim over.
  const [taken] = await ledger.renew([claim], { workerId: 'other', leaseMs: 60_000 });
  assert.equal(typeof taken, 'object');
  await clock.advance(1_500);
  assert.ok(hasCode(signal.reason, 'LEASE_LOST'));
  assert.equal((await ledger.find(claim.id))?.lockedBy, 'other');
});

test('invalid settings are rejected', async () => {
  const [ledger, queue] = [openMemory().outbox, memoryQueue()];
  const deliver = async (): Promise<void> => undefined;
  const bad = [
    () => createQueueDispatcher({ ledger, queue, waitingMax: 0 }),
    () => createQueueDispatcher({ ledger, queue, batchSize: 1.5 }),
    () => createQueueWorker({ ledger, queue, deliver, concurrency: 0 }),
    () => createQueueWorker({ ledger, queue, deliver, timeoutMs: 0 }),
  ];
  for (const each of bad) await rejectsWith(async () => each(), 'OUTBOX_INVALID');
  const prefix = 'mq {outbox}';
  await rejectsWith(async () => createQueueDispatcher({ ledger, queue, prefix }), 'JOB_INVALID');
});

test('starts and stops in any order leave no claim and no timer', async () => {
  const ledger = openMemory().outbox;
  const queue = memoryQueue();
  await enqueued(ledger, ...Array.from({ length: 300 }, () => ({})));
  await stressLifecycle({
    rounds: 50,
    create: () => createQueueDispatcher({ ledger, queue, batchSize: 5, waitingMax: 20 }),
  });
  await stressLifecycle({
    rounds: 50,
    create: () => createQueueWorker({ ledger, queue, deliver: async () => undefined }),
  });
});
