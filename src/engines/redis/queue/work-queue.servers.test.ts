import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue } from 'bullmq';
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
    async open() {
      const { keyPrefix } = await (server === 'Redis' ? sharedRedis() : sharedRedisCluster());
      const open = async () => {
        const redis = await openRedis(address);
        const queue = redis.queue('mails', { prefix: `${keyPrefix}{work}` });
        return { ...queue, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
      };
      return { queue: await open(), second: open };
    },
  })) {
    test(`a BullMQ queue in ${server}: ${name}`, run);
  }
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
  const queue = redis.queue('MessageRequestQueue', { prefix });
  const stopping = new AbortController();
  let data: unknown;
  await queue.work(
    async (job) => {
      data = job.data;
      stopping.abort();
      return undefined;
    },
    { concurrency: 1, signal: stopping.signal },
  );
  assert.deepEqual(data, { messageRequestId: 'r-1', tenant: 'core' });
});
