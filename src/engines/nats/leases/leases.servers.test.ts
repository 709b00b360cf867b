import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
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
