import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hasCode } from '../../../foundation/error.ts';
import { sagaIndexConformance } from '../../../testing/conformance/reactors/saga-index.ts';
import type { SagaEntry } from '../../../reactors/saga-index.ts';
import { seededRandom } from '../../../testing/seeded-random.ts';
import { sharedRedis, sharedRedisCluster } from '../../../testing/servers/shared-servers.ts';
import { connectRedis } from '../connection/connection.ts';
import { openRedis } from '../open-redis.ts';
import { sagaKeyspace, sagaScripts } from './saga-index.ts';

const { url } = await sharedRedis();
const { nodes } = await sharedRedisCluster();
const clusterUrl = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

function entryOf(saga: string, key: string, more: Partial<SagaEntry>): SagaEntry {
  const address = { stream: `${saga}-core-${key}`, saga, tenant: 'core', key, shard: 0 };
  const plain = { status: 'running', revision: 0, updatedAtMs: 1 } as const;
  return { ...address, ...plain, dueAtMs: undefined, reason: undefined, ...more };
}

for (const [name, target] of [
  ['Redis', url],
  ['Redis Cluster', clusterUrl],
] as const) {
  const [one, other] = await Promise.all([openRedis(target), openRedis(target)]);
  const [index, second] = [one.sagas, other.sagas];
  after(async () => {
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  for (const each of sagaIndexConformance(async () => index, { upkeep: true })) {
    test(`sagas in ${name}: ${each.name}`, each.run);
  }

  test(`sagas in ${name}: a process that stalls between entry and due time does not remove a later due time`, async () => {
    const saga = `shop.stalled${process.pid}.v1`;
    await index.put(entryOf(saga, 'a', { revision: 6, dueAtMs: 700 }));
    await using connection = await connectRedis(target);
    const { due, revisions, tenants } = sagaKeyspace(saga);
    const late = [`${saga}-core-a`, 5, '', 'core'];
    await connection.run(sagaScripts.due, [due(0), revisions, tenants], late);
    const upcoming = await index.upcoming({ saga, shards: [0], limit: 9 });
    assert.deepEqual(
      upcoming.map(({ dueAtMs }) => dueAtMs),
      [700],
    );
  });

  test(`sagas in ${name}: a damaged entry stops no list, and is restored`, async () => {
    const saga = `shop.damaged${process.pid}.v1`;
    const entries = ['a', 'b'].map((key) => entryOf(saga, key, { revision: 3 }));
    for (const entry of entries) await index.put(entry);
    const renewed = await index.upkeep?.renew({ saga, shards: [0] });
    await renewed?.();
    assert.deepEqual(await index.upkeep?.incomplete({ saga, shards: [0] }), []);
    await using connection = await connectRedis(target);
    const [key] = sagaKeyspace(saga).tenant('core');
    await connection.ask((client) => client.hset(key, `${saga}-core-a`, '{"revision":'));
    const keysOf = async (): Promise<readonly string[]> =>
      (await index.list({ saga })).map((entry) => entry.key);
    assert.deepEqual(await keysOf(), ['b']);
    assert.deepEqual(await index.upkeep?.incomplete({ saga, shards: [0] }), [0]);
    for (const entry of entries) await index.put(entry);
    assert.deepEqual(await keysOf(), ['a', 'b']);
  });

  test(`sagas in ${name}: concurrent puts lose no due time, and the next put removes outdated due times`, async () => {
    const saga = `shop.race${process.pid}.v1`;
    const random = seededRandom(17);
    const sagas = Array.from({ length: 100 }, (_, at) =>
      Array.from({ length: 6 }, (__, revision) =>
        entryOf(
          saga,
          `k${at}`,
          random.below(2) === 0 ? { revision } : { revision, dueAtMs: 10 + revision },
        ),
      ),
    );
    const all = sagas
      .flat()
      .map((entry) => ({ entry, sortKey: random.below(1_000_000) }))
      .toSorted((a, b) => a.sortKey - b.sortKey);
    await Promise.all(
      all.map(({ entry, sortKey }) => (sortKey % 2 === 0 ? index : second).put(entry)),
    );
    const times = async (): Promise<ReadonlyMap<string, number>> => {
      const upcoming = await index.upcoming({ saga, shards: [0], limit: 1_000 });
      return new Map(upcoming.map(({ stream, dueAtMs }) => [stream, dueAtMs]));
    };
    const raced = await times();
    const last = sagas.flatMap((entries) => entries.slice(-1));
    for (const { stream, dueAtMs } of last) {
      if (dueAtMs !== undefined) assert.equal(raced.get(stream), dueAtMs, stream);
    }
    for (const entry of last) await index.put(entry);
    const settled = await times();
    for (const { stream, dueAtMs } of last) assert.equal(settled.get(stream), dueAtMs, stream);
    assert.deepEqual(await index.list({ saga, limit: 1_000 }), last.toSorted(byStream));
  });

  test(`sagas in ${name}: separates two versions and sagas of the same name in other contexts`, async () => {
    const categories = ['shop', 'billing'].flatMap((bc) =>
      [1, 2].map((version) => `${bc}.meet${process.pid}.v${version}`),
    );
    for (const [at, saga] of categories.entries()) {
      await index.put(entryOf(saga, 'a', { revision: 9 - at, dueAtMs: at }));
    }
    for (const [at, saga] of categories.entries()) {
      assert.deepEqual(
        (await index.list({ saga })).map(({ revision }) => revision),
        [9 - at],
      );
      const upcoming = await index.upcoming({ saga, shards: [0], limit: 9 });
      assert.deepEqual(upcoming, [{ stream: `${saga}-core-a`, dueAtMs: at }]);
    }
  });

  test(`sagas in ${name}: rejects an invalid saga name`, async () => {
    for (const saga of ['', 'shop', 'shop.x.v1:y', 'shop.x.v1-core']) {
      await assert.rejects(
        () => index.upcoming({ saga, shards: [0], limit: 1 }),
        (error) => hasCode(error, 'NAME_INVALID'),
        saga,
      );
    }
    await assert.rejects(
      () => index.list({ saga: 'shop.x.v1', tenant: 'a}b' }),
      (error) => hasCode(error, 'NAME_INVALID'),
    );
    const closed = await openRedis(target);
    const { sagas } = closed;
    await closed[Symbol.asyncDispose]();
    await assert.rejects(
      () => sagas.list({ saga: 'shop.x.v1' }),
      (error) => hasCode(error, 'STORE_CLOSED'),
    );
  });
}

function byStream(a: SagaEntry, b: SagaEntry): number {
  return a.stream < b.stream ? -1 : 1;
}
