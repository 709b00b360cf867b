// The stack of the outbox document as a real application: EventStoreDB, PostgreSQL by TypeORM, BullMQ and NestJS, with
// the variables of its section 9 and the wiring of its section 14. EventStoreDB is the stand-in, or the server of
// MILLRACE_TEST_KURRENTDB. The test sees the application from outside: by the official client, `pg`, BullMQ and HTTP.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { startHttpReceiver, type HttpReceiver } from '../../src/testing/index.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { sharedPostgres, sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import { event, kurrentClient } from '../kurrent/official-clients.ts';
import { until } from '../store/rig.ts';
import { post } from './app-cases.ts';
import { compileApp } from './compile-app.ts';

const compiled = await compileApp();
after(() => compiled[Symbol.dispose]());

interface Stack {
  readonly receiver: HttpReceiver;
  readonly database: pg.Client;
  readonly queuePrefix: string;
  readonly redisUrl: string;
  /** Appends a completed payment, and returns the id of its event. */
  readonly pay: (type?: string) => Promise<string>;
  /** Starts the application as a process. */
  readonly start: (
    env?: Readonly<Record<string, string>>,
  ) => Promise<{ readonly child: Child; readonly url: string }>;
}

async function openStack(opened: AsyncDisposableStack): Promise<Stack> {
  const given = process.env['MILLRACE_TEST_KURRENTDB'];
  const eventStore = given ?? opened.use(await startStandIn({ preset: '24.10' })).url;
  const [{ url: databaseUrl }, redis] = [await sharedPostgres(), await sharedRedis()];
  const receiver = opened.use(await startHttpReceiver());
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  opened.defer(() => database.end());
  const client = opened.use((await kurrentClient()).connect(eventStore));
  const queuePrefix = `${redis.keyPrefix}mq:{outbox}`;
  // A given server may contain payments of earlier runs, so each run has different event types.
  const aggregate = `payment${randomUUID().slice(0, 8)}`;
  const { hostname, port } = new URL(redis.url);
  return {
    receiver,
    database,
    queuePrefix,
    redisUrl: redis.url,
    async pay(type = `${aggregate}.completed.v1`) {
      const id = randomUUID();
      const sent = event({
        type,
        data: { amount: 12.5 },
        metadata: {
          $correlationId: `request-${id}`,
          occurredAt: new Date().toISOString(),
          tenant: 'core',
          aggregate: { bc: 'paymenthub', type: 'payment', id },
          user: { id: 'u1' },
        },
      });
      await client.append(`paymenthub.payment.v1-core-${id}`, sent);
      return sent.id;
    },
    async start(env = {}) {
      const child = opened.use(
        startChild(compiled.outboxMain, {
          env: {
            ESDB_CONNECTION_STRING: eventStore.replace(/^kurrentdb/, 'esdb'),
            ESDB_SUBSCRIPTION_PREFIX: `${aggregate}.,account.`,
            OUTBOX_CLAIM_BATCH_SIZE: '10',
            OUTBOX_MAX_ATTEMPTS: '3',
            OUTBOX_TICK_INTERVAL_MS: '200',
            OUTBOX_DEADLETTER_TOPIC: 'outbox.dead',
            REDIS_HOST: hostname,
            REDIS_PORT: port,
            WEBHOOK_TIMEOUT_MS: '20000',
            DATABASE_URL: databaseUrl,
            RECEIVER_URL: receiver.url,
            OUTBOX_QUEUE_PREFIX: queuePrefix,
            ...env,
          },
        }),
      );
      return { child, url: (await child.message(isListening)).url };
    },
  };
}

interface Row {
  readonly source_event_id: string;
  readonly integration_type: string;
  readonly status: string;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly tenant_id: string;
  readonly user_id: string;
  readonly correlation_id: string;
  readonly last_error: string | null;
}

async function rowsOf(database: pg.Client): Promise<readonly Row[]> {
  const { rows } = await database.query<Row>(
    'select * from core_outbox.integration_outbox order by created_at, id',
  );
  return rows;
}

/** The keys of the messages that a channel has received, in order, with repetitions. */
function keysOf({ requests }: HttpReceiver, path: string): readonly string[] {
  return requests
    .filter((request) => request.path === path)
    .map(({ headers, body }) =>
      String(headers['idempotency-key'] ?? (JSON.parse(body) as { readonly key: string }).key),
    );
}

test('the application of the outbox document starts as it is wired there, and a killed process loses and repeats no row', async () => {
  await using opened = new AsyncDisposableStack();
  const { receiver, database, queuePrefix, redisUrl, pay, start } = await openStack(opened);
  const early = [await pay(), await pay(), await pay()];
  await pay('invoice.sent.v1');
  // The webhooks of the first process never get a response, so it is killed while it sends.
  const release = receiver.answer(({ path }, response) => {
    if (path !== '/partnerX') response.writeHead(204).end();
  });
  const { child } = await start();
  await until('all webhooks are being sent', () => keysOf(receiver, '/partnerX').length === 3);
  const late = [await pay(), await pay()];
  assert.equal(await child.kill('SIGKILL'), 'SIGKILL');
  release();

  const { url } = await start();
  const all = [...early, ...late].toSorted();
  await until('all messages are sent', async () => {
    const rows = await rowsOf(database);
    return rows.length === 10 && rows.every(({ status }) => status === 'SENT');
  });
  const rows = await rowsOf(database);
  for (const type of ['kafka:payments', 'webhook:partnerX']) {
    const ids = rows
      .filter((row) => row.integration_type === type)
      .map((row) => row.source_event_id);
    assert.deepEqual(ids.toSorted(), all);
  }
  for (const row of rows) {
    assert.deepEqual([row.tenant_id, row.user_id, row.max_attempts], ['core', 'u1', 3]);
    assert.match(row.correlation_id, /^request-/);
  }
  assert.deepEqual([...new Set(keysOf(receiver, '/topics/payments'))].toSorted(), all);
  const webhooks = keysOf(receiver, '/partnerX');
  assert.deepEqual([...new Set(webhooks)].toSorted(), all);
  // The messages that the killed process was sending are sent again, with the same keys. On a slow machine a lease may
  // expire during a call, so the number of repetitions is not compared.
  assert.deepEqual([...new Set(webhooks.slice(3))].toSorted(), all);
  assert.equal(await (await fetch(`${url}/health`)).json().then(statusOf), 'up');

  // Checkpoints are in the database of the ledger, and the jobs went through BullMQ.
  const { rows: checkpoints } = await database.query(
    "select 1 from millrace.subscription_shards where subscription = 'sub:paymenthub:outbox:v1'",
  );
  assert.ok(checkpoints.length > 0);
  const redis = new Redis(redisUrl);
  opened.defer(() => redis.disconnect());
  assert.deepEqual((await redis.smembers(`${queuePrefix}:queues`)).toSorted(), [
    'outbox-kafka~payments',
    'outbox-webhook~partnerX',
  ]);
  const queue = new Queue('outbox-webhook~partnerX', {
    connection: redis,
    prefix: queuePrefix,
  });
  opened.defer(() => queue.close());
  // The jobs that the killed process had started stay active until BullMQ notices.
  assert.deepEqual(await queue.getJobCounts('waiting'), { waiting: 0 });
});

test('enqueue returns the row, getAttempts counts, tick adds jobs, and the metrics have the names of the document', async () => {
  await using opened = new AsyncDisposableStack();
  const { receiver, database, start } = await openStack(opened);
  receiver.answer(({ path }, response) => {
    if (path !== '/partnerX') response.writeHead(204).end();
  });
  const { url } = await start({ WEBHOOK_TIMEOUT_MS: '30' });
  const item = {
    sourceStreamId: 'orders-o1',
    sourceEventId: 'o1-paid',
    integrationType: 'webhook:partnerX',
    eventType: 'order.paid.v1',
    payload: { orderId: 'o1' },
    correlationId: 'c1',
    tenantId: 'core',
  };
  const enqueued = (await (await post(`${url}/outbox`, item)).json()) as typeof item & {
    readonly id: string;
    readonly isDuplicate: boolean;
    readonly maxAttempts: number;
  };
  const { id, maxAttempts, isDuplicate, ...returned } = enqueued;
  assert.deepEqual({ maxAttempts, isDuplicate }, { maxAttempts: 3, isDuplicate: false });
  assert.deepEqual({ ...returned, ...item }, returned);
  await until('the message is dead', async () => (await rowsOf(database))[0]?.status === 'DEAD');
  const [row] = await rowsOf(database);
  assert.equal(row?.last_error, 'no response within 30 ms');
  assert.equal(await (await fetch(`${url}/outbox/${id}/attempts`)).text(), '3');
  await until(
    'the dead message is published',
    () => keysOf(receiver, '/topics/outbox.dead').length === 1,
  );
  assert.ok(Number(await (await post(`${url}/tick?limit=5`, {})).text()) >= 0);

  // A delivery is counted when its outcome is stored, after the receiver has it.
  await until('the delivery of the dead message is counted', async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes('outbox_sent_total{'),
  );
  const metrics = await (await fetch(`${url}/metrics`)).text();
  for (const name of documented)
    assert.match(metrics, new RegExp(`^${name}(_count)?[{ ]`, 'm'), name);
  assert.match(metrics, /^outbox_dead_total\{.*event_type="order\.paid\.v1".*\} 1$/m);
  assert.equal(await (await fetch(`${url}/health`)).json().then(statusOf), 'degraded');
});

/** Section 10. */
const documented = [
  'outbox_pending_total',
  'outbox_claimed_total',
  'outbox_sent_total',
  'outbox_failed_total',
  'outbox_dead_total',
  'outbox_claim_duration_ms',
  'outbox_delivery_duration_ms',
];

const statusOf = (health: unknown): string => (health as { readonly status: string }).status;

function isListening(message: unknown): message is { readonly url: string } {
  return typeof message === 'object' && message !== null && 'url' in message;
}
