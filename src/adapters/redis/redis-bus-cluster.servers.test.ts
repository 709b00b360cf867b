import { test } from 'node:test';
import { busConformance } from '../../bus/bus.conformance.ts';
import { sharedRedisCluster } from '../../testing/servers/shared-servers.ts';
import { redisBusFixture } from './redis-bus-fixture.conformance.ts';

const { nodes } = await sharedRedisCluster();
const url = `redis+cluster://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}`;

for (const { name, skip, run } of busConformance(redisBusFixture(url))) {
  test(`bus in a Redis Cluster: ${name}`, { skip: skip ?? false }, run);
}
