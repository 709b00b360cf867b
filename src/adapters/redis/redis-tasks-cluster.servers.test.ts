import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { eventually } from '../../bus/bus-fixture.conformance.ts';
import { hasCode } from '../../foundation/error.ts';
import { taskType } from '../../tasks/task-type.ts';
import { claimSome, email, rejectsWith } from '../../tasks/tasks-fixture.conformance.ts';
import { onServer } from '../../tasks/conformance-rig.test.ts';
import { tasksConformance } from '../../tasks/tasks.conformance.ts';
import { startRedisCluster } from '../../testing/servers/redis-cluster.ts';
import { connectRedis } from './redis-connection.ts';
import { redisTasks } from './redis-tasks.ts';
import { createOutages, refuseConnections } from './redis-refusal.conformance.ts';
import { moveSlotOf } from './redis-slot-move.conformance.ts';
import { redisTasksFixture } from './redis-tasks-fixture.conformance.ts';

// Of its own, as the suite kills it. Without full coverage, nodes that are there go on, however long.
const cluster = await startRedisCluster({
  appendOnly: 'always',
  settings: { 'cluster-require-full-coverage': 'no' },
});
after(() => cluster[Symbol.asyncDispose]());
const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
const url = `redis+cluster://${hosts.join(',')}`;
const fixture = redisTasksFixture(url, { server: createOutages(cluster), isOneDomain: false });

for (const { name, skip, run } of onServer(tasksConformance(fixture))) {
  test(`tasks in a Redis Cluster: ${name}`, { skip: skip ?? false }, run);
}

test('a type whose slot moves to another node goes on behind it, and nothing is lost or there twice', async () => {
  await using tasks = await redisTasks(url, { keyPrefix: 'moving:', types: [taskType(email)] });
  const enqueue = async (n: number): Promise<boolean> => {
    try {
      await tasks.enqueue({ type: email, payload: { n }, key: `k-${n}` });
      return true;
    } catch (error) {
      if (!hasCode(error, 'TASKS_UNAVAILABLE')) throw error;
      return false;
    }
  };
  for (let n = 0; n < 40; n += 1) assert.equal(await enqueue(n), true);
  const held = await claimSome(tasks, 10);
  const enqueuing = (async () => {
    for (let n = 40; n < 80; n += 1) await eventually('it is stored', () => enqueue(n));
  })();
  await moveSlotOf(cluster, `moving:gbe:tasks:${email}:queue`);
  await enqueuing;
  await Promise.all(held.map(({ token }) => tasks.complete(token)));
  const [count] = await tasks.counts();
  assert.deepEqual([count?.states.queued, count?.states.completed], [70, 10]);
  const rest = await claimSome(tasks, 100);
  assert.equal(new Set(rest.map(({ task }) => task.id)).size, 70);
});

test('what one node gave, while another is away, is what the worker gets next', async () => {
  const names = Array.from({ length: 40 }, (_, n) => `type${n}`);
  const types = names.map((name) => taskType(name));
  const keyPrefix = 'apart:';
  await using tasks = await redisTasks(url, { keyPrefix, types });
  await using connection = await connectRedis(cluster.nodes[0]?.url ?? '');
  const slots = await Promise.all(
    names.map(async (name) => {
      const key = `${keyPrefix}gbe:tasks:${name}:queue`;
      return Number(await connection.ask((client) => client.call('CLUSTER', 'KEYSLOT', key)));
    }),
  );
  const here = names[slots.findIndex((slot) => slot <= 5_460)] ?? assert.fail('none is there');
  const away = names[slots.findIndex((slot) => slot > 10_922)] ?? assert.fail('none is there');
  for (const type of [here, away]) await tasks.enqueue({ type, payload: { n: 1 } });
  const comeBack = await refuseConnections(cluster.nodes.slice(2));
  try {
    const both = { [here]: 1, [away]: 1 };
    await rejectsWith(() => claimSome(tasks, 2, { types: both }), 'TASKS_UNAVAILABLE');
    const [kept] = await claimSome(tasks, 1, { types: { [here]: 1 } });
    assert.deepEqual([kept?.task.type, kept?.task.attempt], [here, 1]);
  } finally {
    await comeBack();
  }
});
