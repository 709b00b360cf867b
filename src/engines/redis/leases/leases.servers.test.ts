import { after, test } from 'node:test';
import { leaseStoreConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { redisLeases } from './leases.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const [leases, second] = await Promise.all([redisLeases(target), redisLeases(target)]);
  after(async () => {
    await leases[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
  for (const each of leaseStoreConformance({
    open: async () => leases,
    second: async () => second,
  })) {
    test(`leases in ${name}: ${each.name}`, each.run);
  }
}
