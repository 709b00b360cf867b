// A Redis Cluster moves the slot of a tenant, key by key, while documents are written.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { hasCode } from '../../src/foundation/error.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { documentsOf, readModel } from '../../src/projections/index.ts';
import { startRedisCluster } from '../../src/testing/servers/redis-cluster.ts';
import { until } from '../store/rig.ts';

interface Item {
  readonly code: string;
  readonly round: number;
}

const items = readModel<Item>({
  bc: 'rig',
  aggregate: 'item',
  version: 1,
  indexes: { code: ({ code }) => code },
  sets: { odd: ({ round }) => round % 2 === 1 },
  ranges: { round: ({ round }) => round },
});
const ids = Array.from({ length: 40 }, (_, index) => `i${index}`);
const tenant = 'core';

test('documents are written and read while their slot moves to another node', async () => {
  await using cluster = await startRedisCluster();
  const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  await using readModels = await openRole(`redis+cluster://${hosts.join(',')}`, 'readModels');
  const documents = documentsOf(readModels, items);
  const admins = cluster.nodes.map(({ url }) => new Redis(url));
  try {
    let isMoving = true;
    let round = 0;
    let rejected = 0;
    let attempts = 0;
    /** Waits for one whole write attempt. */
    const attempt = async (): Promise<void> => {
      const enough = attempts + 2;
      await until('a write was attempted', () => attempts >= enough);
    };
    const writing = (async () => {
      while (isMoving || round < 5) {
        const writes = ids.map((id) => ({
          tenant,
          id,
          stream: `rig.item.v1-core-${id}`,
          revision: round,
          document: { code: `${id}-${round}`, round },
        }));
        try {
          await documents.write(writes);
          round += 1;
        } catch (error) {
          assert.ok(hasCode(error, 'STORE_UNAVAILABLE') && error.retryable, String(error));
          rejected += 1;
        }
        attempts += 1;
      }
    })();
    await attempt();
    await moveSlot(admins, attempt);
    isMoving = false;
    await writing;
    // While a node has only a part of the keys, every write is rejected.
    assert.ok(rejected > 0);
    const last = round - 1;
    for (const id of ids) {
      const found = await documents.byIndex(tenant, 'code', `${id}-${last}`);
      assert.deepEqual([found?.id, found?.revision], [id, last]);
    }
    const { items: ranged } = await documents.byRange(tenant, 'round', { from: last });
    assert.equal(ranged.length, ids.length);
    const odd = (await documents.bySet(tenant, 'odd')).items.length;
    assert.equal(odd, last % 2 === 1 ? ids.length : 0);
    // All keys are on one node.
    const holding = await Promise.all(admins.map((admin) => admin.dbsize()));
    assert.equal(holding.filter((size) => size > 0).length, 1, String(holding));
    const holder = admins[holding.findIndex((size) => size > 0)];
    assert.equal(await holder?.hlen(indexKey), ids.length);
  } finally {
    for (const admin of admins) admin.disconnect();
  }
});

const indexKey = 'app:{core}:rig:item:v1:index:by-code';

/** Moves the slot as `redis-cli --cluster reshard` does. */
async function moveSlot(admins: readonly Redis[], halfway: () => Promise<void>): Promise<void> {
  const slot = Number(await admins[0]?.cluster('KEYSLOT', indexKey));
  const from = admins[Math.min(2, Math.floor(slot / 5_461))];
  const to = admins.find((each) => each !== from);
  assert.ok(from !== undefined && to !== undefined);
  const [source, target] = [await from.cluster('MYID'), await to.cluster('MYID')];
  await to.cluster('SETSLOT', slot, 'IMPORTING', source);
  await from.cluster('SETSLOT', slot, 'MIGRATING', target);
  const { host, port } = to.options;
  for (let part = 0; ; part += 1) {
    if (part === 3) await halfway();
    const keys = await from.cluster('GETKEYSINSLOT', slot, 5);
    if (keys.length === 0) break;
    for (const key of keys) {
      await from.migrate(host ?? '', port ?? 0, key, 0, 5_000);
    }
  }
  for (const admin of [to, from, ...admins]) await admin.cluster('SETSLOT', slot, 'NODE', target);
}
