import { openMemory } from '../../memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../../testing/assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createLifecycle } from '../../../foundation/lifecycle.ts';
import { createQueueDispatcher, createQueueWorker } from '../../../outbox/index.ts';
import { enqueued } from '../../../testing/conformance/outbox/fixture.ts';
import { stressLifecycle } from '../../../testing/lifecycle-stress.ts';
import { propertyRuns } from '../../../testing/property-runs.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

test('releases claims and counts no attempt while Redis is unreachable, then sends all messages', async () => {
  await using redis = await startRedis();
  const ledger = openMemory().outbox;
  const logs: string[] = [];
  const log = (_fields: object, message: string): void => void logs.push(message);
  const observer = { log: { debug: () => undefined, info: log, warn: log, error: log } };
  await using handle = await openRedis(redis.url, { observer });
  const queue = handle.queue;
  await using dispatcher = createQueueDispatcher({ ledger, queue, tickIntervalMs: 20 });
  let sent = 0;
  await using worker = createQueueWorker({
    ledger,
    queue,
    async deliver({ starts, attempts }) {
      assert.deepEqual([starts, attempts], [1, 0]);
      sent += 1;
    },
  });
  await dispatcher.start();
  await worker.start();
  await enqueued(ledger, ...Array.from({ length: 20 }, () => ({})));
  await eventually('the first are sent', async () => sent === 20);
  await redis.kill();
  await enqueued(ledger, ...Array.from({ length: 20 }, () => ({})));
  await assert.rejects(
    () => queue.add('mails', [{ id: 'm-1', name: 'send', data: {} }]),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
  );
  await eventually('the outage is logged', async () => logs.includes('Redis connection lost'));
  await eventually('the claims are released', async () => (await ledger.counts()).PENDING === 20);
  // Without persistence, the server starts empty.
  await redis.start();
  await eventually('the others are sent', async () => sent === 40);
  assert.equal((await ledger.counts()).SENT, 40);
});

test('a worker, a dispatcher and their queue stop while Redis is unreachable', async () => {
  await using redis = await startRedis();
  const ledger = openMemory().outbox;
  const handle = await openRedis(redis.url);
  const queue = handle.queue;
  const dispatcher = createQueueDispatcher({ ledger, queue });
  const gate = Promise.withResolvers<void>();
  const worker = createQueueWorker({ ledger, queue, deliver: () => gate.promise });
  await dispatcher.start();
  await worker.start();
  await enqueued(ledger, {});
  await eventually('the delivery has started', async () => worker.inFlight === 1);
  await redis.kill();
  const stopped = Promise.all([dispatcher.stop(), worker.stop()]);
  gate.resolve();
  await stopped;
  await handle[Symbol.asyncDispose]();
  // The ledger has the outcome of the delivery that was in flight.
  assert.equal((await ledger.counts()).SENT, 1);
});

test('opening rejects if Redis is unreachable', async () => {
  await assert.rejects(
    () => openRedis('redis://127.0.0.1:1'),
    (error) => hasCode(error, 'STORE_UNAVAILABLE'),
  );
});

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
const sockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

for (const [server, address] of Object.entries({ Redis: url, 'a Redis Cluster': clusterUrl })) {
  test(`queues in ${server} leave no connection open, whatever the order of opening, work and closing`, async () => {
    const before = sockets();
    const create = (): ReturnType<typeof createLifecycle> => {
      let opened = new AsyncDisposableStack();
      return createLifecycle({
        async start() {
          opened = new AsyncDisposableStack();
          const redis = opened.use(await openRedis(address));
          const { queue } = redis;
          queue.onNudge('{stress}:nudge', () => undefined);
          const stopping = new AbortController();
          const work = { queues: ['{stress}:mails'], concurrency: 1, signal: stopping.signal };
          const done = queue.work(async () => undefined, work);
          opened.defer(async () => {
            stopping.abort();
            await done;
          });
        },
        stop: () => opened.disposeAsync(),
      });
    };
    await stressLifecycle({ create, rounds: propertyRuns(15) });
    await eventually('all connections are closed', async () => sockets() <= before);
  });
}
