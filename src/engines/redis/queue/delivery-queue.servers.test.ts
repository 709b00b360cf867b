import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../../foundation/error.ts';
import { deliveryQueueConformance } from '../../../testing/conformance/outbox/delivery-queue.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openRedis } from '../open-redis.ts';

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
      const open = async () => {
        const queuePrefix = `${keyPrefix}{outbox}`;
        const options = { queuePrefix, queuePerTenant: perTenant, queueDiscoverMs: 20 };
        return ownedRole(await openRedis(address, options), 'deliveryQueue');
      };
      return { queue: await open(), second: open };
    },
  })) {
    test(`BullMQ queues in ${server}: ${name}`, { skip: skip ?? false }, run);
  }
}

test('rejects a prefix without a hash tag on a cluster', async () => {
  await using redis = await openRedis(clusterUrl, { queuePrefix: 'mq' });
  assert.throws(
    () => redis.deliveryQueue,
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
});
