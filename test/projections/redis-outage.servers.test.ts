// Redis goes away in the middle of a projection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sqliteEventStore } from '../../src/adapters/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { openReadModels } from '../../src/platform/index.ts';
import {
  documentsOf,
  projection,
  readModel,
  startProjection,
} from '../../src/projections/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import { startRedisCluster } from '../../src/testing/servers/redis-cluster.ts';
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

const awayMs = soakMinutes > 0 ? 10_000 : 2_500;
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
  leave(): Promise<void>;
  comeBack(): Promise<void>;
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async 'a Redis that is killed'() {
    const server = await startRedis({ appendOnly: 'always' });
    return {
      url: server.url,
      leave: () => server.kill(),
      comeBack: () => server.start(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'a Redis that hangs'() {
    const server = await startRedis();
    return {
      url: server.url,
      leave: async () => server.pause(),
      comeBack: async () => server.resume(),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'a Redis Cluster that is killed'() {
    const cluster = await startRedisCluster({ appendOnly: 'always' });
    return {
      url: clusterUrl(cluster.nodes),
      leave: () => cluster.kill(),
      async comeBack() {
        for (const node of cluster.nodes) await node.start();
        await cluster.whenOk();
      },
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
  async 'a node of a Redis Cluster that is killed'() {
    const cluster = await startRedisCluster({ appendOnly: 'always' });
    // The slot of the tenant is 10092; this one has 5461 to 10922.
    const [, node] = cluster.nodes;
    assert.ok(node !== undefined);
    return {
      url: clusterUrl(cluster.nodes),
      leave: () => node.kill(),
      async comeBack() {
        await node.start();
        await cluster.whenOk();
      },
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
};

for (const [name, start] of Object.entries(targets)) {
  test(`${name} in the middle of a projection: nothing is lost, and it is told once`, async () => {
    await using target = await start();
    // Shorter than it is away.
    const timeoutMs = awayMs / 2;
    await using workspace = await createWorkspace();
    await using store = await sqliteEventStore(`${workspace.folder}/events.db`);
    const log = recordLog();
    const lags: number[] = [];
    const observer = {
      log,
      gauge: (metric: string, value: number) => {
        if (metric === 'projection_lag_seconds') lags.push(value);
      },
    };
    await using readModels = await openReadModels(target.url, { observer, timeoutMs });
    let applied = 0;
    const counting = projection({
      name: 'sub:rig:tallies:v1',
      readModel: tallies,
      batchSize: 20,
      // Fewer attempts than the outage would need, if it counted them.
      retry: { initialMs: 50, factor: 1, capMs: 50, jitterMs: 0, attemptsMax: 3 },
      on: {
        [eventTypes[0]]: (tally: Tally | null) => {
          applied += 1;
          return { count: (tally?.count ?? 0) + 1 };
        },
      },
    });
    const options = { readModels, leaseMs: 1_500, observer };
    await using runner = await startProjection(store, counting, options);
    const appending = appendUntilTold(store);
    await until('some are done', () => applied > 200);
    await target.leave();
    await systemClock.sleep(awayMs);
    const rounds = await appending.end();
    await target.comeBack();
    await runner.whenCaughtUp();
    const documents = documentsOf(readModels, tallies);
    const { items } = await documents.byRange('core', 'count', { limit: 1_000 });
    assert.deepEqual(
      items.map(({ document, revision }) => [document.count, revision]),
      Array.from({ length: streams }, () => [rounds, rounds - 1]),
    );
    const odd = (await documents.bySet('core', 'odd', { limit: 1_000 })).items.length;
    assert.equal(odd, rounds % 2 === 1 ? streams : 0);
    const { deadLetters, waiting } = store.subscriptions;
    assert.deepEqual([await deadLetters.count({}), await waiting.count(counting.name)], [0, 0]);
    const about = (): string[] => log.lines.filter((line) => line.includes('Redis is'));
    await until('it is told that it is back', async () => {
      await documents.get('core', '0');
      return about().at(-1) === 'info Redis is back';
    });
    assert.equal(about()[0], 'warn Redis is away');
    // Two, where the machine itself does not stand still in between.
    assert.ok(about().length <= 6, about().join('\n'));
    assert.ok(log.lines.length < 50, log.lines.join('\n'));
    assert.ok(
      lags.some((seconds) => seconds >= (awayMs - 1_500) / 1_000),
      String(lags),
    );
  });
}

/** One event more in each stream, over and over; before, while and after Redis is away. */
function appendUntilTold(store: EventStore): { end(): Promise<number> } {
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
