import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { eventually, rejectsWith } from '../../../testing/assertions.ts';
import { busConformance } from '../../../testing/conformance/bus/bus.ts';
import { onServer } from '../../../testing/support/bus/on-server.ts';
import {
  ackAll,
  fetchSome,
  longLeaseMs,
  numbersOf,
  publishNumbers,
  upTo,
} from '../../../testing/conformance/bus/fixture.ts';
import type { Delivery } from '../../../bus/bus-message.ts';
import { hasCode } from '../../../foundation/error.ts';
import { startRedisCluster } from '../../../testing/servers/redis-cluster.ts';
import { openRedis } from '../open-redis.ts';
import { redisBusFixture } from '../../../testing/conformance/engines/redis-bus.ts';
import {
  createOutages,
  refuseConnections,
} from '../../../testing/conformance/engines/redis-refusal.ts';
import { moveSlotOf } from '../../../testing/conformance/engines/redis-slot-move.ts';

// A separate cluster, because the suite kills it. Without full coverage, the remaining nodes keep serving.
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

test('while one node is unreachable, delivers the messages of the others, each once', async () => {
  await using redis = await openRedis(url, { keyPrefix: 'partly:' });
  const { bus } = redis;
  const subjects = upTo(30).map((n) => `gbe.notify.topic.t${n}`);
  const group = await bus.group({ group: 'all', subject: 'gbe.notify.>', leaseMs: longLeaseMs });
  const messages = subjects.map((subject) => ({ subject, payload: 0 }));
  await bus.publishMany(messages);
  const endOutage = await refuseConnections(cluster.nodes.slice(1, 2));
  const received: Delivery[] = [];
  const fetchMore = async (): Promise<void> => {
    received.push(...(await group.fetch({ limit: 5, waitMs: 0 })));
  };
  try {
    // Fetch until only messages of the unreachable node remain. At first, the client may ask that node for the slots.
    await eventually('the other nodes reply', async () => {
      await rejectsWith(async () => {
        while (received.length < subjects.length) await fetchMore();
      }, 'BUS_UNAVAILABLE');
      return received.length > 0;
    });
    await rejectsWith(() => bus.publishMany(messages), 'BUS_UNAVAILABLE');
  } finally {
    await endOutage();
  }
  await eventually('the remaining messages arrive', async () => {
    await fetchMore().catch((error: unknown) => {
      if (!hasCode(error, 'BUS_UNAVAILABLE')) throw error;
    });
    return new Set(received.map(({ subject }) => subject)).size === subjects.length;
  });
  assert.ok(received.every(({ deliveryCount }) => deliveryCount === 1));
});

test('a stream keeps its order and its messages while its slot moves to another node', async () => {
  await using redis = await openRedis(url, { keyPrefix: 'moving:' });
  const { bus } = redis;
  const subject = 'gbe.tasks.x.queue';
  const group = await bus.group({ group: 'workers', subject, leaseMs: longLeaseMs });
  await publishNumbers(bus, 20, subject);
  const leased = await fetchSome(group, 10);
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
    for (let n = 20; n < 120; n += 1) await eventually('the message is stored', () => publish(n));
  })();
  await moveSlotOf(cluster, 'moving:gbe:tasks:x:queue');
  await publishing;
  const all = [...leased, ...(await fetchSome(group, 110))];
  assert.deepEqual(numbersOf(all), upTo(120));
  await ackAll(all);
  const [info] = await bus.groups();
  assert.deepEqual([info?.lag, info?.pending], [0, 0]);
});
