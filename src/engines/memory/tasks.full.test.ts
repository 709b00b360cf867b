import { openMemory } from './index.ts';
import { test } from 'node:test';
import { createTasks } from '../../tasks/create-tasks.ts';
import { tasksConformance } from '../../testing/conformance/tasks/tasks.ts';

for (const { name, skip, run } of tasksConformance({
  capabilities: {
    durable: false,
    crossProcess: false,
    atomicSignals: true,
    exactLimits: true,
    exactOrder: true,
    restart: false,
  },
  async open(options) {
    const db = openMemory({ clock: options.clock });
    return {
      tasks: createTasks(db.tasks, options),
      async stream(subject) {
        const messages = await Array.fromAsync(db.bus.read(subject));
        return messages.map(({ id, payload }) => ({ id, payload }));
      },
      async deleteStream(subject) {
        await db.bus.deleteStream(subject, { evenUnacked: true });
      },
    };
  },
})) {
  test(`tasks in memory: ${name}`, { skip: skip ?? false }, run);
}
