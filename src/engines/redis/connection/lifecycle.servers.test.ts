import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLifecycle, type Lifecycle } from '../../../foundation/lifecycle.ts';
import { propertyRuns } from '../../../testing/property-runs.ts';
import { stressLifecycle } from '../../../testing/lifecycle-stress.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { redisBus } from '../bus/bus.ts';
import { redisLeases } from '../leases/leases.ts';
import { redisMirror } from '../mirror.ts';
import { redisReadModels } from '../read-models/read-models.ts';
import { redisSagaIndex } from '../sagas/saga-index.ts';

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

/** Opens a bus that is still opening its second connection when the test closes it. */
async function listening(target: string): Promise<AsyncDisposable> {
  const bus = await redisBus(target, { keyPrefix: 'lifecycle:' });
  const group = await bus.group({ group: 'g', subject: 'gbe.>' });
  const fetching = group.fetch({ waitMs: 60_000 });
  // Closing the bus rejects the fetch.
  fetching.catch(() => undefined);
  return bus;
}

function sockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

for (const [name, open] of Object.entries({
  'leases in Redis': () => redisLeases(url),
  'leases in a cluster': () => redisLeases(clusterUrl),
  'read models in Redis': () => redisReadModels(url),
  'read models in a cluster': () => redisReadModels(clusterUrl),
  'sagas in Redis': () => redisSagaIndex(url),
  'sagas in a cluster': () => redisSagaIndex(clusterUrl),
  'the mirror in Redis': () => redisMirror(url),
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
