import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { busConformance } from '../../bus/bus.conformance.ts';
import { onServer } from '../../bus/conformance-rig.test.ts';
import {
  ackAll,
  eventually,
  fetchSome,
  longLeaseMs,
  numbersOf,
  publishNumbers,
  rejectsWith,
  upTo,
} from '../../bus/bus-fixture.conformance.ts';
import type { Delivery } from '../../bus/bus-message.ts';
import { hasCode } from '../../foundation/error.ts';
import { startRedisCluster } from '../../testing/servers/redis-cluster.ts';
import { redisBus } from './redis-bus.ts';
import { redisBusFixture } from './redis-bus-fixture.conformance.ts';
import { createOutages, refuseConnections } from './redis-refusal.conformance.ts';
import { moveSlotOf } from './redis-slot-move.conformance.ts';

// Of its own, as the suite kills it. Without full coverage, nodes that are there go on, however long.
const cluster = await startRedisCluster({
  appendOnly: 'always',
  settings: { 'cluster-require-full-coverage': 'no' },
});
after(() => cluster[Symbol.asyncDispose]());
const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
const url = `redis+cluster://${hosts.join(',')}`;

const fixture = redisBusFixture(url, createOutages(cluster));

for (const { name, skip, run } of onServer(busConformance(fixture))) {
  test(`bus in a Redis Cluster: ${name}`, { skip: skip ?? false }, run);
}

test('while one node is away, what lies on others is handed out, and counts once', async () => {
  await using bus = await redisBus(url, { keyPrefix: 'partly:' });
  const subjects = upTo(30).map((n) => `gbe.notify.topic.t${n}`);
  const group = await bus.group({ group: 'all', subject: 'gbe.notify.>', leaseMs: longLeaseMs });
  const messages = subjects.map((subject) => ({ subject, payload: 0 }));
  await bus.publishMany(messages);
  const comeBack = await refuseConnections(cluster.nodes.slice(1, 2));
  const came: Delivery[] = [];
  const fetchMore = async (): Promise<void> => {
    came.push(...(await group.fetch({ limit: 5, waitMs: 0 })));
  };
  try {
    // Until nothing is left but what lies on the node that is away. In the first moments everybody may be asked
    // for where things are, and the one that is away among them.
    await eventually('others were reached', async () => {
      await rejectsWith(async () => {
        while (came.length < subjects.length) await fetchMore();
      }, 'BUS_UNAVAILABLE');
      return came.length > 0;
    });
    await rejectsWith(() => bus.publishMany(messages), 'BUS_UNAVAILABLE');
  } finally {
    await comeBack();
  }
  await eventually('the rest came', async () => {
    await fetchMore().catch((error: unknown) => {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
    });
    return new Set(came.map(({ subject }) => subject)).size === subjects.length;
  });
  assert.ok(came.every(({ deliveryCount }) => deliveryCount === 1));
});

test('a stream whose slot moves to another node goes on in order, and nothing is lost', async () => {
  await using bus = await redisBus(url, { keyPrefix: 'moving:' });
  const subject = 'gbe.tasks.x.queue';
  const group = await bus.group({ group: 'workers', subject, leaseMs: longLeaseMs });
  await publishNumbers(bus, 20, subject);
  const held = await fetchSome(group, 10);
  const publish = async (n: number): Promise<boolean> => {
    try {
      await bus.publish({ subject, id: `m-${n}`, payload: { n } });
      return true;
    } catch (error) {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
      return false;
    }
  };
  const publishing = (async () => {
    for (let n = 20; n < 120; n += 1) await eventually('it is stored', () => publish(n));
  })();
  await moveSlotOf(cluster, 'moving:gbe:tasks:x:queue');
  await publishing;
  const all = [...held, ...(await fetchSome(group, 110))];
  assert.deepEqual(numbersOf(all), upTo(120));
  await ackAll(all);
  const [info] = await bus.groups();
  assert.deepEqual([info?.lag, info?.pending], [0, 0]);
});
