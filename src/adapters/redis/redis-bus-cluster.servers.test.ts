import { after, test } from 'node:test';
import { busConformance } from '../../bus/bus.conformance.ts';
import { startRedisCluster } from '../../testing/servers/redis-cluster.ts';
import { redisBusFixture } from './redis-bus-fixture.conformance.ts';

// Of its own, as the suite kills it.
const cluster = await startRedisCluster({ appendOnly: 'always' });
after(() => cluster[Symbol.asyncDispose]());
const hosts = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
const fixture = redisBusFixture(`redis+cluster://${hosts.join(',')}`, cluster);

for (const { name, skip, run } of busConformance(fixture)) {
  test(`bus in a Redis Cluster: ${name}`, { skip: skip ?? false }, run);
}
