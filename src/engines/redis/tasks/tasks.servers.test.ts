import { after, test } from 'node:test';
import { onServer } from '../../../tasks/conformance-rig.test.ts';
import { tasksConformance } from '../../../testing/conformance/tasks/tasks.ts';
import { startRedis } from '../../../testing/servers/redis-server.ts';
import { redisTasksFixture } from '../../../testing/conformance/engines/redis-tasks.ts';

// A separate server, because the suite kills it.
const server = await startRedis({ appendOnly: 'always' });
after(() => server[Symbol.asyncDispose]());

for (const { name, skip, run } of onServer(
  tasksConformance(redisTasksFixture(server.url, { server })),
)) {
  test(`tasks in Redis: ${name}`, { skip: skip ?? false }, run);
}
