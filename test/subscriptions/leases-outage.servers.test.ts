// The lease server is killed and restarted: calls do not queue up, workers do not crash, no event is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import type { SqliteTransaction } from '../../src/engines/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import type { Observer } from '../../src/foundation/observer.ts';
import { startSubscription, subscription, type LeaseStore } from '../../src/subscriptions/index.ts';
import { startNats } from '../../src/testing/servers/nats-server.ts';
import { startRedisCluster } from '../../src/testing/servers/redis-cluster.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import { newEvent, streamName, until } from '../store/rig.ts';
import { recordLog } from './record-log.ts';
import { openSqliteRig } from './open-sqlite-rig.ts';

interface Target extends AsyncDisposable {
  kill(): Promise<void>;
  restart(): Promise<void>;
  open(options: LeaseOptions): Promise<LeaseHandle>;
}

interface LeaseOptions {
  readonly observer?: Observer | undefined;
  readonly timeoutMs: number;
}

interface LeaseHandle extends AsyncDisposable {
  readonly leases: LeaseStore;
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async Redis() {
    const server = await startRedis({ appendOnly: 'always' });
    return {
      kill: () => server.kill(),
      restart: () => server.start(),
      open: (options) => openRedis(server.url, options),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'Redis Cluster'() {
    const cluster = await startRedisCluster({ appendOnly: 'always' });
    const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
    return {
      kill: () => cluster.kill(),
      async restart() {
        for (const node of cluster.nodes) await node.start();
        await cluster.whenOk();
      },
      open: (options) => openRedis(`redis+cluster://${hosts.join(',')}`, options),
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
  async NATS() {
    const server = await startNats();
    return {
      kill: () => server.kill(),
      restart: () => server.start(),
      open: (options) => openNats(server.url, options),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

for (const [name, start] of Object.entries(targets)) {
  test(`${name}: calls during an outage fail immediately as retryable, and tokens continue afterwards`, async () => {
    await using server = await start();
    const log = recordLog();
    await using handle = await server.open({ observer: { log }, timeoutMs: 2_000 });
    const { leases } = handle;
    const key = { subscription: 'sub:rig:outage:v1', shard: 0 };
    const first = await leases.acquire(key, 'a', 60_000);
    assert.ok(first.kind === 'acquired');
    await server.kill();
    // The NATS client notices by itself, and a call without a reply would wait for its whole time limit. The
    // client of a cluster notices only by a call.
    await until('the client notices the outage', async () => {
      if (name !== 'Redis Cluster') return log.lines.length > 0;
      return (await failure(() => leases.list(key.subscription))) !== undefined;
    });
    const calls = Array.from({ length: 2_000 }, () =>
      failure(() => leases.renew({ ...key, token: first.token }, 1_000)),
    );
    for (const error of await Promise.all(calls)) {
      assert.ok(hasCode(error, 'STORE_UNAVAILABLE') && error.retryable, String(error));
    }
    // Some attempts to reconnect fail in this time.
    await systemClock.sleep(600);
    await server.restart();
    const token = first.token;
    await until(
      'the connection is restored',
      async () => (await failure(() => leases.release({ ...key, token }))) === undefined,
    );
    const next = await leases.acquire(key, 'b', 60_000);
    assert.ok(next.kind === 'acquired' && next.token > first.token);
    assert.match(log.lines[0] ?? '', /^warn .* connection lost$/);
    assert.match(log.lines.at(-1) ?? '', /^info .* connection restored$/);
    // Two lines are enough, unless the machine pauses in between.
    assert.ok(log.lines.length <= 6, log.lines.join('\n'));
    await handle[Symbol.asyncDispose]();
    await assert.rejects(
      () => leases.list(key.subscription),
      (error) => hasCode(error, 'STORE_CLOSED'),
    );
  });
}

for (const name of ['Redis', 'NATS']) {
  test(`a subscription continues after its leases in ${name} were unreachable longer than they last`, async () => {
    await using server = await (targets[name] as () => Promise<Target>)();
    await using rig = await openSqliteRig();
    const { store, subscriptions } = rig;
    await using handle = await server.open({ timeoutMs: 1_000 });
    const { leases } = handle;
    const log = recordLog();
    const definition = subscription<SqliteTransaction>({
      name: 'sub:rig:outage:v1',
      async handler({ eventId, stream, revision }, context) {
        const transaction = await context.transaction();
        const into = 'insert into effects (event_id, stream, revision) values (?, ?, ?)';
        transaction.run(into, eventId, stream, revision);
      },
    });
    const roles = { store, subscriptions, leases };
    const options = { leaseMs: 600, observer: { log } };
    await using runner = await startSubscription(roles, definition, options);
    await store.append(streamName(1), [newEvent('e1'), newEvent('e2')]);
    await runner.whenCaughtUp();
    await server.kill();
    await until('the shard is released', () => runner.status.shards.length === 0);
    await store.append(streamName(1), [newEvent('e3')]);
    await server.restart();
    await runner.whenCaughtUp();
    assert.deepEqual(
      (await rig.effects()).map(({ eventId }) => eventId),
      ['e1', 'e2', 'e3'],
    );
    const warnings = log.lines.filter((line) => line === 'warn leases unavailable');
    assert.equal(warnings.length, 1, log.lines.join('\n'));
  });
}

async function failure(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error;
  }
}
