import { after, test } from 'node:test';
import { readModelsConformance } from '../../../testing/conformance/projections/read-models.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target, documents] of [
  ['Redis', url, 'json'],
  ['Redis, as hashes', url, 'hash'],
  ['Redis Cluster', clusterUrl, 'json'],
  ['Redis Cluster, as hashes', clusterUrl, 'hash'],
] as const) {
  const open = () => openRedis(target, { documents });
  const [first, second] = await Promise.all([open(), open()]);
  after(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
  for (const { name: sentence, skip, run } of readModelsConformance({
    capabilities: first.readModels.capabilities,
    open: async () => first.readModels,
    second: async () => second.readModels,
    async closed() {
      const closed = await open();
      const { readModels } = closed;
      await closed[Symbol.asyncDispose]();
      return readModels;
    },
  })) {
    // The scripts are the same as on one Redis, and two random runs cover all nodes.
    if (target === clusterUrl && /\(seed (?![12]\))\d+\)$/.test(sentence)) continue;
    test(`read models in ${name}: ${sentence}`, { skip: skip ?? false }, run);
  }
}
