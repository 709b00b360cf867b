import { after, test } from 'node:test';
import { eventually } from '../../../testing/assertions.ts';
import { startNats } from '../../../testing/servers/nats-server.ts';
import type { Bus } from '../../../bus/bus.ts';
import type { TasksFixture } from '../../../testing/conformance/tasks/fixture.ts';
import { onServer } from '../../../tasks/conformance-rig.test.ts';
import { tasksConformance } from '../../../testing/conformance/tasks/tasks.ts';
import { natsBus } from '../bus/bus.ts';
import { natsTaskCapabilities, natsTasks } from './engine.ts';

const server = await startNats();
after(() => server[Symbol.asyncDispose]());
let opened = 0;

const fixture: TasksFixture = {
  // A single process has seen all writes, so its order is exact.
  capabilities: { ...natsTaskCapabilities, exactOrder: true, restart: true },
  async open(options) {
    opened += 1;
    const prefix = `case${opened}`;
    const tasks = await natsTasks(server.url, { ...options, prefix });
    // Opens the bus only for the cases that read a stream.
    let opening: Promise<Bus> | undefined;
    const openBus = (): Promise<Bus> => (opening ??= natsBus(server.url, { prefix }));
    return {
      tasks,
      second: (other) => natsTasks(server.url, { ...other, prefix }),
      async stream(subject) {
        const messages = await Array.fromAsync((await openBus()).read(subject));
        return messages.map(({ id, payload }) => ({ id, payload }));
      },
      async deleteStream(subject) {
        await (await openBus()).deleteStream(subject, { evenUnacked: true });
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
      async close() {
        await (await opening)?.[Symbol.asyncDispose]();
      },
    };
  },
};

for (const { name, skip, run } of onServer(tasksConformance(fixture))) {
  test(`tasks in NATS: ${name}`, { skip: skip ?? false }, run);
}
