// Millrace: jobs with their history, their signals on the bus, and kept when they are done.

import { randomUUID } from 'node:crypto';
import { redisTasks } from '../../src/adapters/redis/index.ts';
import { startWorkers, task, taskType } from '../../src/tasks/index.ts';
import { ours } from '../benchmark.ts';
import type { SampleMessage } from '../outbox/sample-messages.ts';
import type { TaskSubject } from './task-subject.ts';

const type = 'deliver';

export const millraceOnRedis: TaskSubject = {
  name: ours,
  async open(places) {
    const url = await places.redis();
    const keyPrefix = `${randomUUID().slice(0, 8)}:`;
    const open = () => redisTasks(url, { keyPrefix, types: [taskType(type)] });
    const tasks = await open();
    return {
      enqueue: (payload) => tasks.enqueue({ type, payload }),
      enqueueMany: (jobs) => tasks.enqueueMany(jobs.map((payload) => ({ type, payload }))),
      async start({ concurrency, handle }) {
        const own = await open();
        const deliver = task(type, async (ctx) => handle(ctx.payload as SampleMessage));
        const workers = startWorkers(own, [deliver], {
          concurrency: { [type]: concurrency },
          // As the others do: a thread of its own takes a while to start.
          beatsFromThread: false,
        });
        return {
          async stop() {
            await workers.stop();
            await own[Symbol.asyncDispose]();
          },
        };
      },
      async isSettled() {
        const [count] = await tasks.counts();
        return count === undefined || count.states.queued + count.states.running === 0;
      },
      close: async () => tasks[Symbol.asyncDispose](),
    };
  },
};
