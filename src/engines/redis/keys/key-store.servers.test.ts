import { after, test } from 'node:test';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { keyStoreConformance } from '../../../testing/conformance/work/key-store.ts';
import { redisKeyStore } from './key-store.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [server, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const [keys, second] = [await redisKeyStore(target), await redisKeyStore(target)];
  after(async () => {
    await keys[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
  for (const { name, run } of keyStoreConformance({ keys, second })) {
    test(`keys in ${server}: ${name}`, run);
  }
}
