import { after, test } from 'node:test';
import { openMemory } from '../../memory/open-memory.ts';
import { projectionsConformance } from '../../../testing/conformance/projections/projections.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const [name, target] of [
  ['Redis', url],
  ['a Redis Cluster', clusterUrl],
] as const) {
  const memory = openMemory();
  const redis = await openRedis(target);
  after(async () => {
    await redis[Symbol.asyncDispose]();
    await memory[Symbol.asyncDispose]();
  });
  for (const { name: sentence, run } of projectionsConformance({
    open: async () => {
      const { readModels, readModelVersions, subscriptions } = redis;
      return { ...memory, readModels, readModelVersions, subscriptions };
    },
  })) {
    // An append and its documents are one transaction only if they are in one database.
    const skip = sentence.startsWith('inline:')
      ? 'needs documents in the database of the events'
      : false;
    test(`projections in ${name}: ${sentence}`, { skip }, run);
  }
}
