// Redis becomes unreachable in the middle of a projection.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { connectRedis } from '../../src/engines/redis/connection/connection.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { refuseConnections } from '../../src/testing/conformance/engines/redis-refusal.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import {
  documentsOf,
  projection,
  readModel,
  startProjection,
} from '../../src/projections/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startRedisCluster, type RedisCluster } from '../../src/testing/servers/redis-cluster.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import {
  createWorkspace,
  eventTypes,
  newEvent,
  soakMinutes,
  streamName,
  until,
} from '../store/rig.ts';
import { recordLog } from '../subscriptions/record-log.ts';

/** In seconds: how far the projection falls behind during the outage. */
const lagSeconds = soakMinutes > 0 ? 9 : 1;
const timeoutMs = 500;
const streams = 60;

interface Tally {
  readonly count: number;
}

const tallies = readModel<Tally>({
  bc: 'rig',
  aggregate: 'item',
  version: 1,
  sets: { odd: ({ count }) => count % 2 === 1 },
  ranges: { count: ({ count }) => count },
});

interface Target extends AsyncDisposable {
  readonly url: string;
  stop(): Promise<void>;
  resume(): Promise<void>;
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async 'a Redis that is killed'() {
    const server = await startRedis({ appendOnly: 'always' });
    return {
      url: server.url,
      stop: () => server.kill(),
      resume: () => server.start(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'a Redis that hangs'() {
    const server = await startRedis();
    return {
      url: server.url,
      stop: async () => server.pause(),
      resume: async () => server.resume(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'a Redis Cluster that is killed'() {
    const cluster = await openCluster();
    return {
      url: clusterUrl(cluster.nodes),
      stop: () => cluster.kill(),
      resume: () => cluster.start(),
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
  async 'a node of a Redis Cluster that is unreachable'() {
    const cluster = await openCluster();
    // The slot of the tenant is 10092, and this node has 5461 to 10922.
    const [, node] = cluster.nodes;
    assert.ok(node !== undefined);
    let resume = (): Promise<void> => cluster.start();
    return {
      url: clusterUrl(cluster.nodes),
      async stop() {
        // For so short a time, refused connections look the same as a kill.
        if (soakMinutes > 0) await node.kill();
        else resume = await refuseConnections([node]);
      },
      resume: () => resume(),
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
};

// The cluster starts while the tests of the single server run.
const starting = startRedisCluster({ appendOnly: 'always' });
after(async () => (await starting)[Symbol.asyncDispose]());

/** All tests share one cluster, which is emptied for each. */
async function openCluster(): Promise<RedisCluster> {
  const cluster = await starting;
  for (const { url } of cluster.nodes) {
    await using connection = await connectRedis(url);
    await connection.ask((client) => client.flushall());
  }
  return cluster;
}

for (const [name, start] of Object.entries(targets)) {
  test(`${name} in the middle of a projection: no document is lost, and the log reports each change once`, async () => {
    await using target = await start();
    await using workspace = await createWorkspace();
    await using db = await openSqlite(`${workspace.folder}/events.db`);
    const { store, subscriptions, readModelVersions } = db;
    const log = recordLog();
    const lags: number[] = [];
    const observer = {
      log,
      gauge: (metric: string, value: number) => {
        if (metric === 'projection_lag_seconds') lags.push(value);
      },
    };
    await using redis = await openRedis(target.url, { observer, timeoutMs });
    const { readModels } = redis;
    const about = (): string[] => log.lines.filter((line) => line.includes('Redis connection'));
    let applied = 0;
    const counting = projection({
      name: 'sub:rig:tallies:v1',
      readModel: tallies,
      filter: { category: 'rig.item.v1' },
      batchSize: 20,
      // Fewer attempts than the outage would need, so they must not be counted.
      retry: { initialMs: 50, factor: 1, capMs: 50, jitterMs: 0, attemptsMax: 3 },
      on: {
        [eventTypes[0]]: (tally: Tally | null) => {
          applied += 1;
          return { count: (tally?.count ?? 0) + 1 };
        },
      },
    });
    const roles = { store, subscriptions, readModels, readModelVersions };
    await using runner = await startProjection(roles, counting, { leaseMs: 1_500, observer });
    const appending = appendUntilStopped(store);
    await until('200 events are applied', () => applied > 200);
    await target.stop();
    lags.length = 0;
    await until(
      'the projection lags during the outage',
      () =>
        lags.some((seconds) => seconds >= lagSeconds) &&
        about().at(-1) === 'warn Redis connection lost',
    );
    const rounds = await appending.end();
    await target.resume();
    await runner.whenCaughtUp();
    const documents = documentsOf(readModels, tallies);
    const { items } = await documents.byRange('core', 'count', { limit: 1_000 });
    assert.deepEqual(
      items.map(({ document, revision }) => [document.count, revision]),
      Array.from({ length: streams }, () => [rounds, rounds - 1]),
    );
    const odd = (await documents.bySet('core', 'odd', { limit: 1_000 })).items.length;
    assert.equal(odd, rounds % 2 === 1 ? streams : 0);
    const { deadLetters, waiting } = subscriptions;
    assert.deepEqual([await deadLetters.count({}), await waiting.count(counting.name)], [0, 0]);
    await until('the log reports the restored connection', async () => {
      await documents.get('core', '0');
      return about().at(-1) === 'info Redis connection restored';
    });
    // The log has each change once, and no line for each attempt.
    const changes = ['warn Redis connection lost', 'info Redis connection restored'];
    assert.deepEqual(
      about(),
      about().map((_, at) => changes[at % 2]),
    );
    const others = log.lines.filter((line) => !changes.includes(line) && !line.includes('shard'));
    assert.equal(new Set(others).size, others.length, others.join('\n'));
  });
}

/** Appends one event to each stream repeatedly, before, during and after the outage. */
function appendUntilStopped(store: EventStore): { end(): Promise<number> } {
  let isOver = false;
  let rounds = 0;
  const appending = (async () => {
    while (!isOver) {
      await Promise.all(
        Array.from({ length: streams }, (_, index) =>
          store.append(streamName(index), [newEvent(`e${index}-${rounds}`)]),
        ),
      );
      rounds += 1;
      await systemClock.sleep(100);
    }
  })();
  return {
    async end() {
      isOver = true;
      await appending;
      return rounds;
    },
  };
}

function clusterUrl(nodes: readonly { readonly host: string; readonly port: number }[]): string {
  return `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;
}
