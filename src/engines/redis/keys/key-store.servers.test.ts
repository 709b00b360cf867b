import { after, test } from 'node:test';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { keyStoreConformance } from '../../../testing/conformance/work/key-store.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [server, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const [first, other] = [await openRedis(target), await openRedis(target)];
  after(async () => {
    await first[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  for (const { name, run } of keyStoreConformance({ keys: first.keys, second: other.keys })) {
    test(`keys in ${server}: ${name}`, run);
  }
}
