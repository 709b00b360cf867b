// Moves a slot from one node of a cluster to another, for tests of calls during the migration.

import assert from 'node:assert/strict';
import type { RedisCluster } from '../../servers/redis-cluster.ts';
import { connectRedis } from '../../../engines/redis/connection/connection.ts';

/** Works like `redis-cli --cluster reshard`; calls `onPart` after each batch of keys. */
export async function moveSlotOf(
  cluster: Pick<RedisCluster, 'nodes'>,
  key: string,
  onPart?: () => Promise<void>,
): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const nodes = await Promise.all(
    cluster.nodes.map(async (node) => {
      const { client } = opened.use(await connectRedis(node.url));
      const call = (...words: [string, ...string[]]): Promise<unknown> => client.call(...words);
      return { node, call, id: String(await call('CLUSTER', 'MYID')) };
    }),
  );
  const slot = String(await nodes[0]?.call('CLUSTER', 'KEYSLOT', key));
  const counts = await Promise.all(
    nodes.map(async ({ call }) => Number(await call('CLUSTER', 'COUNTKEYSINSLOT', slot))),
  );
  const from = nodes.find((_, at) => (counts[at] ?? 0) > 0) ?? assert.fail('no node has the slot');
  const to = nodes.find((each) => each !== from) ?? assert.fail('the cluster has only one node');
  await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
  await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  for (;;) {
    const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, '10')) as string[];
    if (keys.length === 0) break;
    const { host, port } = to.node;
    await from.call('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
    await onPart?.();
  }
  for (const each of [to, from, ...nodes]) {
    await each.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
  }
}
