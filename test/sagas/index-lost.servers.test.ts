// The saga index in Redis loses some or all of its data: it is rebuilt from the streams, and no timer
// is missed.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { openMemory } from '../../src/engines/memory/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { createEnvelope, parseRedisKey, type NewEvent } from '../../src/contracts/index.ts';
import { systemClock, type Clock } from '../../src/foundation/clock.ts';
import { orderSaga, paid, placed } from '../../src/testing/support/reactors/example-order.ts';
import { sagaAdmin, startSaga, type SagaStatus } from '../../src/reactors/index.ts';
import { createReceiver } from '../../src/testing/support/reactors/saga-rig.ts';
import { startRedisCluster } from '../../src/testing/servers/redis-cluster.ts';
import { startRedis, type RedisServer } from '../../src/testing/servers/redis-server.ts';
import { until } from '../store/rig.ts';

interface Target extends AsyncDisposable {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  readonly redis: Redis | Cluster;
  whenOk(): Promise<void>;
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async Redis() {
    const server = await startRedis({ appendOnly: 'always' });
    return target(server.url, [server], new Redis(server.url), async () => undefined, server);
  },
  async 'Redis Cluster'() {
    const cluster = await startRedisCluster({ appendOnly: 'always' });
    const addresses = cluster.nodes.map(({ host, port }) => ({ host, port }));
    const url = `redis+cluster://${addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`;
    const { nodes } = cluster;
    return target(url, nodes, new Cluster(addresses), () => cluster.whenOk(), cluster);
  },
};

function target(
  url: string,
  nodes: readonly RedisServer[],
  redis: Redis | Cluster,
  whenOk: () => Promise<void>,
  server: AsyncDisposable,
): Target {
  redis.on('error', () => undefined);
  return {
    url,
    nodes,
    redis,
    whenOk,
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await server[Symbol.asyncDispose]();
    },
  };
}

const tenants = ['core', 'demo', 'north', 'south'];
const keys = ['o1', 'o2', 'o3'];
const saga = { bc: 'shop', name: 'fulfilment', version: 1 };
const category = 'shop.fulfilment.v1';
const shards = [0, 1];
const paymentMs = 3_600_000;
const expiresAfterMs = 24 * paymentMs;

/** Opens an empty index, and a store whose saga uses it. */
async function openRig(where: Target, options: { readonly timeoutMs?: number } = {}) {
  await flush(where);
  const redis = await openRedis(where.url, options);
  const { sagas: index } = redis;
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const { store, subscriptions } = openMemory({ clock });
  const roles = { store, subscriptions, sagas: index };
  const receiver = createReceiver();
  const admin = sagaAdmin(roles, saga);
  const append = async (event: NewEvent, tenant: string): Promise<void> => {
    const { orderId: id } = event.payload as { orderId: string };
    const [type = ''] = event.type.split('.');
    const envelope = createEnvelope(event, { tenant, aggregate: { bc: 'shop', type, id } });
    await store.append(`shop.${type}.v1-${tenant}-${id}`, [envelope]);
  };
  const forAll = (work: (tenant: string, orderId: string) => Promise<void>) =>
    Promise.all(tenants.flatMap((tenant) => keys.map((key) => work(tenant, key))));
  const start = () =>
    startSaga(roles, orderSaga({ paymentMs, expiresAfterMs, shards: shards.length }), {
      send: receiver.send,
      clock,
      timerPollMs: 50,
    });
  const place = () => forAll((tenant, orderId) => append(placed({ orderId }), tenant));
  const untilAll = (status: SagaStatus): Promise<void> =>
    until(`all sagas are ${status}`, async () => {
      const found = await admin.list({ status }).catch(() => undefined);
      return found?.items.length === tenants.length * keys.length;
    });
  return {
    index,
    subscriptions,
    receiver,
    start,
    place,
    untilAll,
    async startWithOrders() {
      const running = await start();
      await place();
      await untilAll('running');
      return running;
    },
    /** Moves the clock, so no timer fires earlier, however slow the machine is. */
    passPaymentTime(): void {
      aheadMs = paymentMs;
    },
    pay: () => forAll((tenant, orderId) => append(paid({ orderId }), tenant)),
    untilComplete: (): Promise<void> =>
      until('the index is complete', async () => {
        const query = { saga: category, shards };
        const missing = await index.upkeep.incomplete(query).catch(() => shards);
        return missing.length === 0;
      }),
    async firedOnce(): Promise<void> {
      await forAll(async (tenant, key) => {
        const own = await store.readStream(`${category}-${tenant}-${key}`).toArray();
        const fired = own.filter(({ type }) => type === 'fulfilment.timer-fired.v1');
        assert.equal(fired.length, 1, `${tenant} ${key}`);
      });
      assert.equal(receiver.effects.length, 2 * tenants.length * keys.length);
      assert.equal(await subscriptions.deadLetters.count({}), 0);
    },
    async restart(): Promise<void> {
      await Promise.all(where.nodes.map((node) => node.kill()));
      for (const node of where.nodes) await node.start();
      await where.whenOk();
    },
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}

async function flush({ redis }: Target): Promise<void> {
  await Promise.all(mastersOf(redis).map((node) => node.flushall()));
}

function mastersOf(redis: Redis | Cluster): readonly Redis[] {
  return redis instanceof Cluster ? redis.nodes('master') : [redis];
}

for (const [name, open] of Object.entries(targets)) {
  const where = await open();
  after(() => where[Symbol.asyncDispose]());

  test(`${name}: the sagas of all tenants are in the documented hash, and every key is a known one`, async () => {
    await using rig = await openRig(where);
    await using _ = await rig.startWithOrders();
    await rig.pay();
    await rig.untilAll('completed');
    const text = await where.redis.hget(
      'checkpoint:workflow:fulfilment:{demo}',
      `${category}-demo-o2`,
    );
    const { key, status, tenant } = JSON.parse(text ?? '') as Record<string, unknown>;
    assert.deepEqual({ key, status, tenant }, { key: 'o2', status: 'completed', tenant: 'demo' });
    const names = await Promise.all(mastersOf(where.redis).map((node) => node.keys('*')));
    const kinds = names.flat().map((each) => parseRedisKey(each).kind);
    assert.deepEqual([...new Set(kinds)].toSorted(), [
      'workflow',
      'workflow-by-status',
      'workflow-part',
      'workflows',
    ]);
    assert.deepEqual(await rig.index.upcoming({ saga: category, shards, limit: 10 }), []);
    // Nothing is kept of a timer that has fired.
    assert.equal(await where.redis.exists('checkpoint:workflow:{fulfilment}:shop:v1:revisions'), 0);
  });

  test(`${name}: after the index is emptied, each timer fires once and the list is complete again`, async () => {
    await using rig = await openRig(where);
    await using _ = await rig.startWithOrders();
    await flush(where);
    rig.passPaymentTime();
    await rig.untilAll('compensated');
    await rig.firedOnce();
  });

  test(`${name}: after the index is emptied while no worker runs, due timers fire at the next start`, async () => {
    await using rig = await openRig(where);
    {
      await using _ = await rig.startWithOrders();
    }
    await flush(where);
    assert.deepEqual(await rig.index.list({}), []);
    rig.passPaymentTime();
    await using _ = await rig.start();
    await rig.untilAll('compensated');
    await rig.firedOnce();
  });

  test(`${name}: running sagas complete after the server is killed and restarted without data loss`, async () => {
    await using rig = await openRig(where, { timeoutMs: 2_000 });
    await using _ = await rig.startWithOrders();
    const killed = rig.restart();
    await rig.pay();
    await killed;
    await rig.untilAll('completed');
    assert.equal(rig.receiver.effects.length, 3 * tenants.length * keys.length);
    assert.equal(await rig.subscriptions.deadLetters.count({}), 0);
  });

  test(`${name}: a server that lost its last acknowledged writes misses no timer`, async () => {
    await using rig = await openRig(where, { timeoutMs: 2_000 });
    await using _ = await rig.start();
    await rig.untilComplete();
    await rig.place();
    await rig.untilAll('running');
    // Simulates a power loss: the index is marked complete, but its last writes are missing.
    for (const shard of shards) {
      const key = `checkpoint:workflow:{fulfilment}:shop:v1:due:${shard}`;
      await where.redis.zremrangebyscore(key, '-inf', '(+inf');
    }
    assert.deepEqual(await rig.index.upcoming({ saga: category, shards, limit: 10 }), []);
    await rig.restart();
    rig.passPaymentTime();
    await rig.untilAll('compensated');
    await rig.firedOnce();
  });

  test(`${name}: a tenant whose entries are deleted is listed again after the next query`, async () => {
    await using rig = await openRig(where);
    await using _ = await rig.startWithOrders();
    await rig.untilComplete();
    await where.redis.del('checkpoint:workflow:fulfilment:{demo}');
    await rig.untilAll('running');
    await rig.untilComplete();
    // The entries of this tenant can be found only without a status.
    await where.redis.del('checkpoint:workflow:fulfilment:{north}:by-status');
    await rig.untilAll('running');
  });

  test(`${name}: an index that is emptied during its rebuild is rebuilt again`, async () => {
    await using rig = await openRig(where);
    const query = { saga: category, shards };
    const done = await rig.index.upkeep.renew(query);
    await flush(where);
    await done();
    assert.deepEqual(await rig.index.upkeep.incomplete(query), shards);
    await using _ = await rig.start();
    await rig.untilComplete();
  });

  test(`${name}: repeating a put completes one that stored the entry but not its timer`, async () => {
    await flush(where);
    await using redis = await openRedis(where.url);
    const { sagas: index } = redis;
    const stream = `${category}-core-o1`;
    const address = { stream, saga: category, tenant: 'core', key: 'o1', shard: 1 };
    const status = 'running' as const;
    const entry = {
      ...address,
      status,
      revision: 4,
      updatedAtMs: 1,
      dueAtMs: 700,
      reason: undefined,
    };
    await index.put(entry);
    const due = 'checkpoint:workflow:{fulfilment}:shop:v1:due:1';
    const lose = async (): Promise<void> => {
      await where.redis.zrem(due, stream);
      await where.redis.hdel('checkpoint:workflow:{fulfilment}:shop:v1:revisions', stream);
    };
    await lose();
    await index.put(entry);
    assert.equal(await where.redis.zscore(due, stream), '700');
    // An older put restores the newer timer.
    await lose();
    await index.put({ ...entry, revision: 3, dueAtMs: 100 });
    assert.equal(await where.redis.zscore(due, stream), '700');
  });
}
