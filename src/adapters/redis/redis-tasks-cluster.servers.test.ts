import { after, test } from 'node:test';
import { tasksConformance } from '../../tasks/tasks.conformance.ts';
import { startRedisCluster } from '../../testing/servers/redis-cluster.ts';
import { redisTasksFixture } from './redis-tasks-fixture.conformance.ts';

// Of its own, as the suite kills it. Without full coverage, nodes that are there go on, however long.
const cluster = await startRedisCluster({
  appendOnly: 'always',
  settings: { 'cluster-require-full-coverage': 'no' },
});
after(() => cluster[Symbol.asyncDispose]());
const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
const url = `redis+cluster://${hosts.join(',')}`;
const fixture = redisTasksFixture(url, { server: cluster, isOneDomain: false });

for (const { name, skip, run } of tasksConformance(fixture)) {
  test(`tasks in a Redis Cluster: ${name}`, { skip: skip ?? false }, run);
}
