import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { eventually, rejectsWith } from '../../../testing/assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createTasks } from '../../../tasks/create-tasks.ts';
import { taskType } from '../../../tasks/task-type.ts';
import { claimSome, email } from '../../../testing/conformance/tasks/fixture.ts';
import { onServer } from '../../../tasks/conformance-rig.test.ts';
import { tasksConformance } from '../../../testing/conformance/tasks/tasks.ts';
import { startRedisCluster } from '../../../testing/servers/redis-cluster.ts';
import { connectRedis } from '../connection/connection.ts';
import { openRedis } from '../open-redis.ts';
import {
  createOutages,
  refuseConnections,
} from '../../../testing/conformance/engines/redis-refusal.ts';
import { moveSlotOf } from '../../../testing/conformance/engines/redis-slot-move.ts';
import { redisTasksFixture } from '../../../testing/conformance/engines/redis-tasks.ts';

// A separate cluster, because the suite kills it. Without full coverage, the remaining nodes keep serving.
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

test('a type neither loses nor duplicates jobs while its slot moves to another node', async () => {
  await using redis = await openRedis(url, { keyPrefix: 'moving:' });
  await using tasks = createTasks(redis.tasks, { types: [taskType(email)] });
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
  const claimed = await claimSome(tasks, 10);
  const enqueuing = (async () => {
    for (let n = 40; n < 80; n += 1) await eventually('the job is stored', () => enqueue(n));
  })();
  await moveSlotOf(cluster, `moving:gbe:tasks:${email}:queue`);
  await enqueuing;
  await Promise.all(claimed.map(({ token }) => tasks.complete(token)));
  const [count] = await tasks.counts();
  assert.deepEqual([count?.states.queued, count?.states.completed], [70, 10]);
  const rest = await claimSome(tasks, 100);
  assert.equal(new Set(rest.map(({ task }) => task.id)).size, 70);
});

test('returns jobs of a reachable node with the next claim, if another node was unreachable', async () => {
  const names = Array.from({ length: 40 }, (_, n) => `type${n}`);
  const types = names.map((name) => taskType(name));
  const keyPrefix = 'apart:';
  await using redis = await openRedis(url, { keyPrefix });
  await using tasks = createTasks(redis.tasks, { types });
  await using connection = await connectRedis(cluster.nodes[0]?.url ?? '');
  const slots = await Promise.all(
    names.map(async (name) => {
      const key = `${keyPrefix}gbe:tasks:${name}:queue`;
      return Number(await connection.ask((client) => client.call('CLUSTER', 'KEYSLOT', key)));
    }),
  );
  const here =
    names[slots.findIndex((slot) => slot <= 5_460)] ?? assert.fail('no type is on this node');
  const elsewhere =
    names[slots.findIndex((slot) => slot > 10_922)] ?? assert.fail('no type is on this node');
  for (const type of [here, elsewhere]) await tasks.enqueue({ type, payload: { n: 1 } });
  const endOutage = await refuseConnections(cluster.nodes.slice(2));
  try {
    const both = { [here]: 1, [elsewhere]: 1 };
    await rejectsWith(() => claimSome(tasks, 2, { types: both }), 'TASKS_UNAVAILABLE');
    const [next] = await claimSome(tasks, 1, { types: { [here]: 1 } });
    assert.deepEqual([next?.task.type, next?.task.attempt], [here, 1]);
  } finally {
    await endOutage();
  }
});
