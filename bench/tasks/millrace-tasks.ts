// Millrace: jobs with their history and their signals on the bus, kept after completion.

import { randomUUID } from 'node:crypto';
import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { startWorkers, task, taskType } from '../../src/tasks/index.ts';
import { ownedTasks, type TaskHandle } from '../../src/testing/owned-tasks.ts';
import { ours } from '../benchmark.ts';
import type { SampleMessage } from '../outbox/sample-messages.ts';
import type { OpenedTaskQueue, TaskSubject } from './task-subject.ts';

const type = 'deliver';

export const millraceOnRedis: TaskSubject = {
  name: ours,
  async open(servers) {
    const url = await servers.redis();
    const keyPrefix = `${randomUUID().slice(0, 8)}:`;
    return queueOn(() => openRedis(url, { keyPrefix }));
  },
};

export const millraceOnNats: TaskSubject = {
  name: `${ours} (nats)`,
  isSlow: true,
  async open(servers) {
    const url = await servers.nats();
    const prefix = randomUUID().slice(0, 8);
    return queueOn(() => openNats(url, { prefix }));
  },
};

export const millraceOnSqlite: TaskSubject = {
  name: `${ours} (sqlite)`,
  isSlow: true,
  async open(servers) {
    const file = await servers.sqlite();
    return queueOn(() => openSqlite(`sqlite:${file}`));
  },
};

async function queueOn(openHandle: () => Promise<TaskHandle>): Promise<OpenedTaskQueue> {
  const open = async () => ownedTasks(await openHandle(), { types: [taskType(type)] });
  const tasks = await open();
  return {
    enqueue: (payload) => tasks.enqueue({ type, payload }),
    enqueueMany: (jobs) => tasks.enqueueMany(jobs.map((payload) => ({ type, payload }))),
    async start({ concurrency, handle }) {
      const own = await open();
      const deliver = task(type, async (ctx) => handle(ctx.payload as SampleMessage));
      const workers = startWorkers(own, [deliver], { concurrency: { [type]: concurrency } });
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
}
