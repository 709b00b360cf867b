import { after, test } from 'node:test';
import { keyClaimsConformance } from '../../../testing/conformance/aggregates/key-claims.ts';
import { snapshotStoreConformance } from '../../../testing/conformance/aggregates/snapshot-store.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const redis = await openRedis(target);
  after(() => redis[Symbol.asyncDispose]());
  for (const each of snapshotStoreConformance(async () => redis.snapshots)) {
    test(`snapshots in ${name}: ${each.name}`, each.run);
  }
  for (const each of keyClaimsConformance(async () => redis.keyClaims)) {
    test(`key claims in ${name}: ${each.name}`, each.run);
  }
}
