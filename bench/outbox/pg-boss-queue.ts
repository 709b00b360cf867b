// pg-boss: batches of 100, fetched continuously while they are full, and woken by NOTIFY.

import pg from 'pg';
import { importPeer } from '../peers.ts';
import { openTransaction } from './open-transaction.ts';
import type { QueueSubject } from './queue-subject.ts';
import { inBatches, type SampleMessage } from './sample-messages.ts';

interface PgBoss {
  on(event: 'error', listener: () => void): void;
  start(): Promise<unknown>;
  stop(options: { readonly graceful: boolean; readonly timeout: number }): Promise<void>;
  createQueue(name: string, options: { readonly notify: boolean }): Promise<void>;
  insert(
    name: string,
    jobs: readonly { readonly data: object }[],
    options?: { readonly db: { executeSql(text: string, values?: unknown[]): Promise<unknown> } },
  ): Promise<unknown>;
  work(
    name: string,
    options: {
      readonly batchSize: number;
      readonly burstWhenBatchFull: boolean;
      readonly localConcurrency: number;
      readonly pollingIntervalSeconds: number;
    },
    handler: (jobs: readonly { readonly data: SampleMessage }[]) => Promise<void>,
  ): Promise<string>;
  offWork(name: string, options: { readonly wait: boolean }): Promise<void>;
}

const queue = 'deliver';
/** Each worker has a batch of 100 in progress; more workers would only wait for each other. */
const workersMax = 4;

export const pgBossQueue: QueueSubject = {
  name: 'pg-boss',
  async open(servers) {
    type Peer = { readonly PgBoss: new (options: object) => PgBoss };
    const { PgBoss: Boss } = await importPeer<Peer>('pg-boss');
    const connectionString = await servers.postgres();
    const pool = new pg.Pool({ connectionString, max: 2 });
    const boss = new Boss({ connectionString, max: 10, useListenNotify: true });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue(queue, { notify: true });
    const jobs = (messages: readonly SampleMessage[]) => messages.map((data) => ({ data }));
    return {
      async enqueue(messages) {
        for (const batch of inBatches(messages)) await boss.insert(queue, jobs(batch));
      },
      begin: (message) =>
        openTransaction(pool, (client) => {
          const db = {
            executeSql: (text: string, values?: unknown[]) => client.query(text, values),
          };
          return boss.insert(queue, jobs([message]), { db });
        }),
      async start({ concurrency, handle }) {
        await boss.work(
          queue,
          {
            batchSize: 100,
            burstWhenBatchFull: true,
            localConcurrency: Math.min(concurrency, workersMax),
            pollingIntervalSeconds: 1,
          },
          async (batch) => {
            for (const { data } of batch) handle(data);
          },
        );
        return { stop: () => boss.offWork(queue, { wait: true }) };
      },
      async isSettled() {
        const { rows } = await pool.query<{ left: boolean }>(
          `select exists (select from pgboss.job where name = $1 and state < 'completed') as left`,
          [queue],
        );
        return rows[0]?.left === false;
      },
      empty: async () => void (await pool.query('truncate pgboss.job')),
      async close() {
        await boss.stop({ graceful: false, timeout: 1_000 });
        await pool.end();
      },
    };
  },
};
