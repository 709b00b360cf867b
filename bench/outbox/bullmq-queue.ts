// BullMQ without a ledger: jobs are in Redis and removed when they are done.

import { Redis } from 'ioredis';
import { importPeer } from '../peers.ts';
import type { QueueSubject } from './queue-subject.ts';
import { inBatches, type SampleMessage } from './sample-messages.ts';

interface Queue {
  add(name: string, data: SampleMessage): Promise<unknown>;
  addBulk(
    jobs: readonly { readonly name: string; readonly data: SampleMessage }[],
  ): Promise<unknown>;
  getJobCounts(...states: readonly string[]): Promise<Readonly<Record<string, number>>>;
  obliterate(options: { readonly force: boolean }): Promise<void>;
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

export const bullMqQueue: QueueSubject = {
  name: 'bullmq',
  async open(servers) {
    const { Queue, Worker } = await importPeer<BullMq>('bullmq');
    const url = await servers.redis();
    queues += 1;
    const name = `deliver-${queues}`;
    const connect = (): Redis => new Redis(url, { maxRetriesPerRequest: null });
    const connection = connect();
    const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true } });
    return {
      async enqueue(messages) {
        for (const batch of inBatches(messages)) {
          await queue.addBulk(batch.map((data) => ({ name: data.eventType, data })));
        }
      },
      begin: async (message) => async () => void (await queue.add(message.eventType, message)),
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
      empty: () => queue.obliterate({ force: true }),
      async close() {
        await queue.close();
        connection.disconnect();
      },
    };
  },
};
