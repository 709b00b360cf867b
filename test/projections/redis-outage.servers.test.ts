// Redis goes away in the middle of a projection.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sqliteEventStore } from '../../src/adapters/sqlite/index.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { openReadModels } from '../../src/platform/index.ts';
import { documentsOf, readModel } from '../../src/projections/index.ts';
import { startSubscription, subscription } from '../../src/subscriptions/index.ts';
import { startRedisCluster } from '../../src/testing/servers/redis-cluster.ts';
import { startRedis } from '../../src/testing/servers/redis-server.ts';
import type { ServerProcess } from '../../src/testing/servers/server-process.ts';
import { startAgain } from '../store/connect.ts';
import { createWorkspace, newEvent, soakMinutes, streamName, until } from '../store/rig.ts';
import { recordLog } from '../subscriptions/record-log.ts';

const awayMs = soakMinutes > 0 ? 10_000 : 2_500;
const [events, streams] = [3_000, 60];

interface Tally {
  readonly count: number;
  readonly parity: 'even' | 'odd';
}

const tallies = readModel<Tally>({
  bc: 'rig',
  aggregate: 'item',
  version: 1,
  sets: { odd: ({ parity }) => parity === 'odd' },
  ranges: { count: ({ count }) => count },
});

interface Target extends AsyncDisposable {
  readonly url: string;
  readonly servers: readonly ServerProcess[];
  whenBack(): Promise<void>;
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async Redis() {
    const server = await startRedis({ appendOnly: 'always' });
    return {
      url: server.url,
      servers: [server],
      whenBack: async () => undefined,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async 'a Redis Cluster'() {
    const cluster = await startRedisCluster({ appendOnly: 'always' });
    const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
    return {
      url: `redis+cluster://${hosts.join(',')}`,
      servers: cluster.nodes,
      whenBack: () => cluster.whenOk(),
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  },
};

for (const [name, start] of Object.entries(targets)) {
  test(`${name} away in the middle of a projection: nothing is lost, and it is told once`, async () => {
    await using target = await start();
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
    await using readModels = await openReadModels(target.url, { observer });
    const documents = documentsOf(readModels, tallies);
    let handled = 0;
    const each = subscription({
      name: 'sub:rig:tallies:v1',
      lanes: 8,
      // Fewer attempts than the outage would need, if it counted them.
      retry: { initialMs: 50, factor: 1, capMs: 50, jitterMs: 0, attemptsMax: 3 },
      async handler({ tenant, stream, revision }) {
        const id = stream.slice(streamName('').length);
        const before = await documents.get(tenant, id);
        const count = (before?.document.count ?? 0) + 1;
        const source = { tenant, id, stream, revision };
        // An event that comes again finds itself counted, and the fence refuses it.
        await documents.put(source, { count, parity: count % 2 === 0 ? 'even' : 'odd' });
        handled += 1;
      },
    });
    for (let at = 0; at < events; at += streams) {
      await Promise.all(
        Array.from({ length: streams }, (_, index) =>
          store.append(streamName(index), [newEvent(`e${at + index}`)]),
        ),
      );
    }
    const options = { leaseMs: 1_500, observer };
    await using runner = await startSubscription(store, each, options);
    await until('some are done', () => handled > 200);
    await Promise.all(target.servers.map((server) => server.kill()));
    await systemClock.sleep(awayMs);
    assert.ok(handled < events, 'it was too fast to be interrupted');
    for (const server of target.servers) await startAgain(server);
    await target.whenBack();
    await runner.whenCaughtUp();
    const each50 = events / streams;
    for (let index = 0; index < streams; index += 1) {
      const found = await documents.get('core', String(index));
      assert.deepEqual([found?.document.count, found?.revision], [each50, each50 - 1]);
    }
    assert.deepEqual((await documents.bySet('core', 'odd')).items, []);
    const { items } = await documents.byRange('core', 'count', { from: each50, limit: 1_000 });
    assert.equal(items.length, streams);
    assert.equal(await store.subscriptions.deadLetters.count({}), 0);
    const said = log.lines.filter((line) => !line.startsWith('debug'));
    assert.deepEqual(
      said.filter((line) => !line.endsWith('shard acquired')),
      ['warn Redis is away', 'info Redis is back'],
      said.join('\n'),
    );
    assert.ok(
      lags.some((seconds) => seconds >= (awayMs - 1_000) / 1_000),
      String(lags),
    );
  });
}
