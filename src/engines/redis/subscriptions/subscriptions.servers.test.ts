import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { redisKeys } from '../../../contracts/redis-keys.ts';
import { withLeases } from '../../../subscriptions/with-leases.ts';
import {
  acquireShard,
  at,
  newLetter,
  newName,
} from '../../../testing/conformance/subscriptions/fixture.ts';
import { subscriptionStorageConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { openRedis } from '../open-redis.ts';
import { shardKeyspace, subscriptionScripts } from './keyspace.ts';

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
  const client = name === 'Redis' ? new Redis(url) : new Cluster([...nodes]);
  after(() => client.disconnect());
  const copyOf = async (subscription: string): Promise<unknown> =>
    JSON.parse((await client.get(`checkpoint:esdb:${subscription}`)) ?? 'null');

  test(`the checkpoint of the naming document is the lowest position of all shards, in ${name}`, async () => {
    const { subscriptions: storage } = first;
    const subscription = newName();
    const [one, two] = [
      await acquireShard(storage, subscription, 1),
      await acquireShard(storage, subscription, 0),
    ];
    await storage.checkpoints.save(one, at(2 ** 53 - 1));
    assert.deepEqual(await copyOf(subscription), { commit: '0', prepare: '0' });
    await storage.checkpoints.save(two, at(12));
    assert.deepEqual(await copyOf(subscription), { commit: '12', prepare: '12' });
    await storage.settle(two, { kind: 'delivered', positions: [at(13)], checkpoint: at(13) });
    assert.deepEqual(await copyOf(subscription), { commit: '13', prepare: '13' });
    await storage.checkpoints.reset(subscription, at(5), { by: 'ada', atMs: 1 });
    assert.deepEqual(await copyOf(subscription), { commit: '5', prepare: '5' });
  });

  test(`a delayed copy of the checkpoint does not replace a newer one, in ${name}`, async () => {
    const fence = await acquireShard(first.subscriptions);
    const { subscription } = fence;
    await first.subscriptions.checkpoints.save(fence, at(5));
    const changesKey = redisKeys.checkpointChanges(subscription);
    const delayed = (await client.get(changesKey)) ?? '';
    await second.subscriptions.checkpoints.save(fence, at(9));
    const values = [redisKeys.checkpoint(subscription), changesKey, delayed, '{"commit":"5"}'];
    assert.equal(await client.eval(subscriptionScripts.mirror.lua, 2, ...values), 0);
    assert.deepEqual(await copyOf(subscription), { commit: '9', prepare: '9' });
  });

  test(`a lease of the role leases protects the storage of the same ${name}`, async () => {
    const storage = withLeases(first.subscriptions, second.leases);
    const late = await acquireShard(storage);
    await storage.leases.release(late);
    const fence = await acquireShard(storage, late.subscription);
    assert.ok(fence.token > late.token);
    await storage.checkpoints.save(fence, at(3));
    await assert.rejects(() => storage.checkpoints.save(late, at(9)));
    assert.equal(await storage.leases.renew(fence, 1_000), true);
    await storage.checkpoints.reset(fence.subscription, at(1), { by: 'ada', atMs: 1 });
    assert.equal(await storage.leases.renew(fence, 1_000), false);
  });

  test(`all keys of a subscription are in one slot, in ${name}`, async () => {
    const { subscriptions: storage } = first;
    const fence = await acquireShard(storage);
    const { subscription } = fence;
    await storage.settle(fence, { kind: 'delivered', positions: [at(2)] });
    await storage.deadLetters.add(fence, newLetter(fence, { parked: true }));
    await storage.leases.announce(subscription, 'w1', 60_000);
    await storage.processed.claim(
      { eventId: 'e1', handler: subscription },
      { leaseMs: 1, ttlMs: 60_000 },
    );
    const masters = name === 'Redis' ? [client as Redis] : (client as Cluster).nodes('master');
    const keys = (
      await Promise.all(masters.map((node) => node.keys(`*{${subscription}}*`)))
    ).flat();
    assert.deepEqual(
      keys.toSorted(),
      [
        redisKeys.lease(subscription, 'shards'),
        redisKeys.lease(subscription, 'workers'),
        ...(
          [
            'blocked:0',
            'letter-ids',
            'letters',
            'letters-by-time',
            'letters-pending',
            'marks:0',
            'processed',
            'processed-expiry',
            'state',
            'waiting:0',
          ] as const
        ).map((part) => redisKeys.subscription(subscription, part)),
      ].toSorted(),
    );
  });

  for (const each of subscriptionStorageConformance({
    capabilities: first.subscriptions.capabilities,
    open: async () => first.subscriptions,
    second: async () => second.subscriptions,
    async damage(subscription, json) {
      const { letters, state, waiting } = shardKeyspace({ subscription, shard: 0 });
      for (const field of await client.hkeys(letters)) {
        if (/:(?:body|history|cause)$/.test(field)) await client.hset(letters, field, json);
      }
      await client.hset(state, 'filter', json);
      for (const member of await client.zrange(waiting, 0, -1)) {
        await client.zrem(waiting, member);
        await client.zadd(waiting, 0, [...member.split('\0').slice(0, 2), json].join('\0'));
      }
    },
  })) {
    test(`subscriptions in ${name}: ${each.name}`, { skip: each.skip ?? false }, each.run);
  }
}
