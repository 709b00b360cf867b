// A worker of BullMQ itself on a queue of the outbox, as docs/outbox.md shows it: the claim token of its job protects
// against late and repeated runs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue, Worker, type Job } from 'bullmq';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import {
  createQueueDispatcher,
  decideDelivery,
  type ClaimedMessage,
  type OutboxLedger,
} from '../../src/outbox/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { enqueued } from '../../src/testing/conformance/outbox/fixture.ts';
import { sharedPostgres, sharedRedis } from '../../src/testing/servers/shared-servers.ts';

type OutboxJobData = Readonly<Record<'outboxId' | 'token', string>>;
type Publish = (message: ClaimedMessage) => Promise<void>;

/** The body of the worker on the page, except that a failed message is due again at once. */
async function sendOne(
  outbox: OutboxLedger,
  { data }: Pick<Job<OutboxJobData>, 'data'>,
  publish: Publish,
) {
  const claims = [{ id: data.outboxId, token: data.token }];
  const [message] = await outbox.renew(claims, { workerId: 'kafka', leaseMs: 60_000 });
  if (message === undefined || typeof message === 'string') return message;
  try {
    await publish(message);
  } catch (error) {
    const schedule = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
    const result = { kind: 'retry', error: String(error) } as const;
    await outbox.settle([decideDelivery(message, result, { nowMs: Date.now(), schedule })]);
    return 'failed';
  }
  return outbox.markSent(message);
}

async function openRig(publish: Publish) {
  await using opening = new AsyncDisposableStack();
  const [postgres, { url, keyPrefix }] = await Promise.all([sharedPostgres(), sharedRedis()]);
  const { outbox } = opening.use(await openPostgres(postgres.url, { roles: ['outbox'] }));
  const { queue } = opening.use(await openRedis(url));
  const prefix = `${keyPrefix}mq`;
  const dispatcher = opening.use(
    createQueueDispatcher({ ledger: outbox, queue, prefix, tickIntervalMs: 20 }),
  );
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port) };
  const jobs: Job<OutboxJobData>[] = [];
  const results: unknown[] = [];
  const worker = new Worker<OutboxJobData>(
    'outbox-kafka~payments',
    async (job) => {
      jobs.push(job);
      results.push(await sendOne(outbox, job, publish));
    },
    { connection, prefix, autorun: false },
  );
  opening.defer(() => worker.close());
  const waiting = new Queue('outbox-kafka~payments', { connection, prefix });
  opening.defer(() => waiting.close());
  const opened = opening.move();
  return {
    outbox,
    dispatcher,
    worker,
    waiting,
    jobs,
    results,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const payments = { integrationType: 'kafka:payments' } as const;

test('a plain BullMQ worker marks messages as sent, failed and dead, and the outbox retries', async () => {
  const sent: string[] = [];
  await using rig = await openRig(async ({ eventType, attempts, payload }) => {
    assert.equal(eventType, 'payment.completed.v1');
    if (payload['fails'] === 'always') throw new Error('no broker');
    if (payload['fails'] === 'once' && attempts === 0) throw new Error('no broker');
    sent.push(String(payload['name']));
  });
  const [first = '', second = '', third = ''] = await enqueued(
    rig.outbox,
    { ...payments, payload: { name: 'first' }, tenantId: 'core', correlationId: 'c-1' },
    { ...payments, payload: { name: 'second', fails: 'once' } },
    { ...payments, payload: { name: 'third', fails: 'always' }, maxAttempts: 2 },
  );
  await rig.dispatcher.start();
  void rig.worker.run();
  await eventually('all are settled', async () => {
    const { SENT, DEAD } = await rig.outbox.counts();
    return SENT === 2 && DEAD === 1;
  });
  assert.deepEqual(sent.toSorted(), ['first', 'second']);
  assert.equal((await rig.outbox.find(first))?.status, 'SENT');
  assert.equal(await rig.outbox.getAttempts(second), 1);
  const dead = await rig.outbox.find(third);
  assert.deepEqual([dead?.status, dead?.lastError], ['DEAD', 'Error: no broker']);
  const job = rig.jobs.find(({ data }) => data.outboxId === first);
  assert.deepEqual(Object.keys(job?.data ?? {}).toSorted(), [
    'attempt',
    'correlationId',
    'outboxId',
    'tenantId',
    'token',
  ]);
});

test('a plain BullMQ worker sends nothing for a job whose claim is lost, repeated or paused', async () => {
  const sent: string[] = [];
  await using rig = await openRig(async ({ id }) => void sent.push(id));
  const [id = ''] = await enqueued(rig.outbox, payments);
  await rig.dispatcher.tick();
  const [job] = await rig.waiting.getWaiting();
  assert.ok(job !== undefined);
  const again = { data: job.data as OutboxJobData };
  void rig.worker.run();
  await eventually('the job has run', async () => rig.results.length === 1);
  // BullMQ runs a job again whose worker stalled.
  assert.equal(await sendOne(rig.outbox, again, async () => assert.fail('sent twice')), 'stale');
  assert.deepEqual([rig.results, sent], [['settled'], [id]]);

  await rig.worker.pause();
  const [later = ''] = await enqueued(rig.outbox, payments);
  await rig.dispatcher.tick();
  await rig.outbox.pause('kafka:payments', 'operator');
  void rig.worker.resume();
  await eventually('the second job has run', async () => rig.results.length === 2);
  assert.deepEqual([rig.results[1], sent], ['paused', [id]]);
  assert.equal((await rig.outbox.find(later))?.status, 'PENDING');
});
