// BullMQ: jobs in Redis, kept after completion like those of all subjects.

import { Redis } from 'ioredis';
import type { SampleMessage } from '../outbox/sample-messages.ts';
import { importPeer } from '../peers.ts';
import type { TaskSubject } from './task-subject.ts';

interface Queue {
  add(name: string, data: SampleMessage): Promise<unknown>;
  addBulk(
    jobs: readonly { readonly name: string; readonly data: SampleMessage }[],
  ): Promise<unknown>;
  getJobCounts(...states: readonly string[]): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

interface Worker {
  on(event: 'error', listener: () => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (
    name: string,
    handler: (job: { readonly data: SampleMessage }) => Promise<void>,
    options: object,
  ) => Worker;
}

let queues = 0;

export const bullMqTasks: TaskSubject = {
  name: 'bullmq',
  async open(servers) {
    const { Queue, Worker } = await importPeer<BullMq>('bullmq');
    const url = await servers.redis();
    queues += 1;
    const name = `tasks-${queues}`;
    const connect = (): Redis => new Redis(url, { maxRetriesPerRequest: null });
    const connection = connect();
    const queue = new Queue(name, { connection });
    return {
      enqueue: (data) => queue.add('deliver', data),
      enqueueMany: (jobs) => queue.addBulk(jobs.map((data) => ({ name: 'deliver', data }))),
      async start({ concurrency, handle }) {
        const own = connect();
        const worker = new Worker(name, async ({ data }) => handle(data), {
          connection: own,
          concurrency,
        });
        worker.on('error', () => undefined);
        await worker.waitUntilReady();
        return {
          async stop() {
            await worker.close();
            own.disconnect();
          },
        };
      },
      async isSettled() {
        const counts = await queue.getJobCounts('waiting', 'active', 'delayed');
        return Object.values(counts).every((count) => count === 0);
      },
      async close() {
        await queue.close();
        connection.disconnect();
      },
    };
  },
};
