import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { eventually, rejectsWith } from '../../../testing/assertions.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { workQueueConformance } from '../../../testing/conformance/work/work-queue.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [server, address] of [
  ['Redis', url],
  ['a Redis Cluster', clusterUrl],
] as const) {
  for (const { name, run } of workQueueConformance({
    crossProcess: true,
    async open() {
      const { keyPrefix } = await (server === 'Redis' ? sharedRedis() : sharedRedisCluster());
      const open = async () => ownedRole(await openRedis(address), 'queue');
      return { queue: await open(), prefix: `${keyPrefix}{work}`, second: open };
    },
  })) {
    test(`BullMQ queues in ${server}: ${name}`, run);
  }

  test(`BullMQ queues in ${server}: another process receives a nudge`, async () => {
    const { keyPrefix } = await (server === 'Redis' ? sharedRedis() : sharedRedisCluster());
    await using one = await openRedis(address);
    await using other = await openRedis(address);
    let received = 0;
    other.queue.onNudge(`${keyPrefix}nudge`, () => void (received += 1));
    await eventually('the nudge arrived', async () => {
      one.queue.nudge(`${keyPrefix}nudge`);
      return received > 0;
    });
  });
}

test('processes a job that BullMQ itself added, with a numeric id', async () => {
  const { keyPrefix } = await sharedRedis();
  const { hostname, port } = new URL(url);
  const connection = { host: hostname, port: Number(port) };
  const prefix = `${keyPrefix}plain`;
  const plain = new Queue('MessageRequestQueue', { connection, prefix });
  await plain.add('send-message-request', { messageRequestId: 'r-1', tenant: 'core' });
  await plain.close();
  await using redis = await openRedis(url);
  const stopping = new AbortController();
  let data: unknown;
  await redis.queue.work(
    async (job) => {
      data = job.data;
      stopping.abort();
      return undefined;
    },
    { queues: [`${prefix}:MessageRequestQueue`], concurrency: 1, signal: stopping.signal },
  );
  assert.deepEqual(data, { messageRequestId: 'r-1', tenant: 'core' });
});

test('a queue without a prefix has the keys of BullMQ, and a running job a lock of 15 s', async () => {
  const { keyPrefix } = await sharedRedis();
  const name = `mails-${keyPrefix.replaceAll(/[^a-z0-9]/gi, '')}`;
  await using redis = await openRedis(url);
  const client = new Redis(url);
  await redis.queue.add(name, [{ id: 'j-1', name: 'send', data: {} }]);
  assert.deepEqual(await client.lrange(`bull:${name}:wait`, 0, -1), ['j-1']);
  const stopping = new AbortController();
  let lockMs = 0;
  await redis.queue.work(
    async () => {
      lockMs = await client.pttl(`bull:${name}:j-1:lock`);
      stopping.abort();
      return undefined;
    },
    { queues: [name], concurrency: 1, signal: stopping.signal },
  );
  assert.ok(lockMs > 0 && lockMs <= 15_000, `${lockMs}`);
  client.disconnect();
});

test('rejects a prefix without a hash tag on a cluster', async () => {
  await using redis = await openRedis(clusterUrl);
  await rejectsWith(() => redis.queue.state('mq:mails', 'j-1'), 'JOB_INVALID');
});
