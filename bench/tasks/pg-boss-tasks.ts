// pg-boss, with the settings of the outbox benchmark.

import { pgBossQueue } from '../outbox/pg-boss-queue.ts';
import type { SampleMessage } from '../outbox/sample-messages.ts';
import type { TaskSubject } from './task-subject.ts';

export const pgBossTasks: TaskSubject = {
  name: pgBossQueue.name,
  async open(servers) {
    const queue = await pgBossQueue.open(servers);
    return {
      enqueue: (job) => queue.enqueue([job]),
      enqueueMany: (jobs) => queue.enqueue(jobs),
      start: ({ concurrency, handle }) =>
        queue.start({ concurrency, handle: (job) => handle(job as SampleMessage) }),
      isSettled: () => queue.isSettled(),
      close: () => queue.close(),
    };
  },
};
