import { after, test } from 'node:test';
import { busConformance } from '../../../testing/conformance/bus/bus.ts';
import { onServer } from '../../../testing/support/bus/on-server.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { redisBusFixture } from '../../../testing/conformance/engines/redis-bus.ts';

// A separate server, because the suite kills it.
const server = await startRedis({ appendOnly: 'always' });
after(() => server[Symbol.asyncDispose]());

for (const { name, skip, run } of onServer(busConformance(redisBusFixture(server.url, server)))) {
  test(`bus in Redis: ${name}`, { skip: skip ?? false }, run);
}
