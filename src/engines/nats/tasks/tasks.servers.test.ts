import { after, test } from 'node:test';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

import { eventually } from '../../../testing/assertions.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import type { TasksFixture } from '../../../testing/conformance/tasks/fixture.ts';
import { onServer } from '../../../tasks/conformance-rig.test.ts';
import { tasksConformance } from '../../../testing/conformance/tasks/tasks.ts';
import { createTasks, type TasksOptions } from '../../../tasks/create-tasks.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import { ownedRole } from '../../../testing/owned-role.ts';
import { openNats } from '../open-nats.ts';
import { natsTaskCapabilities } from './engine.ts';

const server = await startNats();
after(() => server[Symbol.asyncDispose]());
let opened = 0;

/** The fields as the cases of the suite store them. */
const fieldOf = { payload: /\{"n":\d+\}/, run: /\{[^{]*"history":\[.*\]\}?/ };

const fixture: TasksFixture = {
  // A single process has seen all writes, so its order is exact.
  capabilities: { ...natsTaskCapabilities, exactOrder: true, restart: true },
  async open(options) {
    opened += 1;
    const prefix = `case${opened}`;
    const { clock } = options;
    const nats = await openNats(server.url, { clock, prefix });
    const tasks = createTasks(nats.tasks, options);
    return {
      tasks,
      async second(other: TasksOptions): Promise<Tasks> {
        const second = await openNats(server.url, { clock: other.clock, prefix });
        return createTasks(ownedRole(second, 'tasks'), other);
      },
      async stream(subject) {
        const messages = await Array.fromAsync(nats.bus.read(subject));
        return messages.map(({ id, payload }) => ({ id, payload }));
      },
      async deleteStream(subject) {
        await nats.bus.deleteStream(subject, { evenUnacked: true });
      },
      async damage(id, part) {
        const connection = await connect({ servers: server.url });
        const { streams } = await jetstreamManager(connection);
        const subject = `$KV.${prefix}-tasks.state.job.${id}`;
        const message = await streams.getMessage(`KV_${prefix}-tasks`, { last_by_subj: subject });
        const text = message?.string() ?? '';
        const damaged =
          part === 'head'
            ? text.slice(4)
            : text.replace(fieldOf[part], (whole) => '{'.padEnd(whole.length));
        await jetstream(connection).publish(subject, damaged);
        await connection.close();
      },
      async outage() {
        await server.stop();
        return async () => {
          await server.start();
          await eventually('the tasks are available', async () => {
            try {
              return (await tasks.counts()).length >= 0;
            } catch {
              return false;
            }
          });
        };
      },
      close: async () => nats[Symbol.asyncDispose](),
    };
  },
};

for (const { name, skip, run } of onServer(tasksConformance(fixture))) {
  test(`tasks in NATS: ${name}`, { skip: skip ?? false }, run);
}
