import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { deliveryQueueConformance } from '../../testing/conformance/outbox/delivery-queue.ts';
import { sharedRedis, sharedRedisCluster } from '../../testing/servers/shared-servers.ts';
import { bullmqDeliveryQueue } from './delivery-queue.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [server, address] of [
  ['Redis', url],
  ['a Redis Cluster', clusterUrl],
] as const) {
  for (const { name, skip, run } of deliveryQueueConformance({
    crossProcess: true,
    async open({ perTenant }) {
      const { keyPrefix } = await (server === 'Redis' ? sharedRedis() : sharedRedisCluster());
      const options = { prefix: `${keyPrefix}{outbox}`, perTenant, discoverMs: 20 };
      return {
        queue: await bullmqDeliveryQueue(address, options),
        second: () => bullmqDeliveryQueue(address, options),
      };
    },
  })) {
    test(`BullMQ queues in ${server}: ${name}`, { skip: skip ?? false }, run);
  }
}

test('rejects a prefix without a hash tag on a cluster', async () => {
  await assert.rejects(
    () => bullmqDeliveryQueue(clusterUrl, { prefix: 'mq' }),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
});
