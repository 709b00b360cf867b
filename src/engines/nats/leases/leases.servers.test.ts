import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { leaseStoreConformance } from '../../../testing/conformance/subscriptions/subscription-storage.ts';
import { sharedNats } from '../../../testing/servers/shared-servers.ts';
import { openNats } from '../open-nats.ts';

const { url, prefix } = await sharedNats();
const [first, second] = await Promise.all([openNats(url, { prefix }), openNats(url, { prefix })]);
after(async () => {
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

for (const { name, run } of leaseStoreConformance({
  open: async () => first.leases,
  second: async () => second.leases,
})) {
  test(`leases in NATS: ${name}`, run);
}

test('a damaged lease is free, and the leases of other shards and workers stay', async () => {
  const subscription = 'sub:shop:damaged:v1';
  for (const shard of [0, 1]) await first.leases.acquire({ subscription, shard }, 'w', 60_000);
  await first.leases.announce(subscription, 'w', 60_000);
  const connection = await connect({ servers: url });
  const folder = `$KV.${prefix}-leases.shop.damaged.v1`;
  for (const key of ['shards.0', 'workers.dzI']) {
    await jetstream(connection).publish(`${folder}.${key}`, '{"owner":');
  }
  await connection.close();
  const listed = await first.leases.list(subscription);
  assert.deepEqual(
    listed.map(({ shard, owner }) => [shard, owner]),
    [[1, 'w']],
  );
  assert.deepEqual(await first.leases.announce(subscription, 'w', 60_000), ['w']);
  const acquired = await second.leases.acquire({ subscription, shard: 0 }, 'w-2', 60_000, {
    above: 1,
  });
  assert.deepEqual(acquired, { kind: 'acquired', token: 2 });
});

test('a deleted bucket is created again', async () => {
  const key = { subscription: 'sub:shop:orders:v1', shard: 0 };
  await first.leases.acquire(key, 'w', 60_000);
  const connection = await connect({ servers: url });
  await (await jetstreamManager(connection)).streams.delete(`KV_${prefix}-leases`);
  await connection.close();
  assert.deepEqual(await first.leases.list(key.subscription), []);
  const acquired = await first.leases.acquire(key, 'w-2', 60_000, { above: 7 });
  assert.deepEqual(acquired, { kind: 'acquired', token: 8 });
  assert.equal((await second.leases.list(key.subscription))[0]?.owner, 'w-2');
});
