import { after, test } from 'node:test';
import { leaseStoreConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const [first, second] = await Promise.all([openRedis(target), openRedis(target)]);
  after(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
  for (const each of leaseStoreConformance({
    open: async () => first.leases,
    second: async () => second.leases,
  })) {
    test(`leases in ${name}: ${each.name}`, each.run);
  }
}
