import { test } from 'node:test';
import { createTasks } from './create-tasks.ts';
import { memoryTaskEngine } from './memory-task-engine.ts';
import { tasksConformance } from '../testing/conformance/tasks/tasks.ts';

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
    const engine = memoryTaskEngine(options.clock === undefined ? {} : { clock: options.clock });
    return {
      tasks: createTasks(engine, options),
      stream: async (subject) => engine.streamOf(subject),
      deleteStream: async (subject) => engine.deleteStream(subject),
    };
  },
})) {
  test(`tasks in memory: ${name}`, { skip: skip ?? false }, run);
}
