import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLifecycle, type Lifecycle } from '../../../foundation/lifecycle.ts';
import { propertyRuns } from '../../../testing/property-runs.ts';
import { stressLifecycle } from '../../../testing/lifecycle-stress.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis, type RedisEngine } from '../open-redis.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

function lifecycleOf(open: () => Promise<AsyncDisposable>): Lifecycle {
  let opened: AsyncDisposable | undefined;
  return createLifecycle({
    async start() {
      opened = await open();
    },
    async stop() {
      await opened?.[Symbol.asyncDispose]();
      opened = undefined;
    },
  });
}

async function used(target: string, call: (redis: RedisEngine) => Promise<unknown>) {
  const redis = await openRedis(target);
  await call(redis);
  return redis;
}

const leases = (redis: RedisEngine) => redis.leases.list('sub:shop:orders-projection:v1');
const sagas = (redis: RedisEngine) => redis.sagas.list({});
const order = { bc: 'shop', aggregate: 'order', version: 1 };
const documents = ({ readModels }: RedisEngine) =>
  readModels.find(order, 'core', { index: 'code', value: 'a' });
const mirror = (redis: RedisEngine) => redis.mirror.publish([{ channel: 'a', text: '' }]);

/** Opens a bus that is still opening its second connection when the test closes it. */
async function listening(target: string): Promise<AsyncDisposable> {
  const redis = await openRedis(target, { keyPrefix: 'lifecycle:' });
  const group = await redis.bus.group({ group: 'g', subject: 'gbe.>' });
  const fetching = group.fetch({ waitMs: 60_000 });
  // Closing the bus rejects the fetch.
  fetching.catch(() => undefined);
  return redis;
}

function sockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

for (const [name, open] of Object.entries({
  'leases in Redis': () => used(url, leases),
  'leases in a cluster': () => used(clusterUrl, leases),
  'read models in Redis': () => used(url, documents),
  'read models in a cluster': () => used(clusterUrl, documents),
  'sagas in Redis': () => used(url, sagas),
  'sagas in a cluster': () => used(clusterUrl, sagas),
  'the mirror in Redis': () => used(url, mirror),
  'a bus in Redis': () => listening(url),
  'a bus in a cluster': () => listening(clusterUrl),
})) {
  test(`${name}: leaves no connection open, whatever the order of opening and closing`, async () => {
    const before = sockets();
    await stressLifecycle({ create: () => lifecycleOf(open), rounds: propertyRuns(40) });
    // Node removes a closed socket from the list a moment later.
    for (let round = 0; round < 6_000 && sockets() > before; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.ok(sockets() <= before, `${sockets()} sockets, ${before} before`);
  });
}
