// Millrace: the ledger in PostgreSQL with each way of delivery, with default settings.

import pg from 'pg';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import {
  createOutboxDispatcher,
  createQueueDispatcher,
  createQueueWorker,
  type OutboxLedger,
} from '../../src/outbox/index.ts';
import { ours } from '../benchmark.ts';
import { openTransaction } from './open-transaction.ts';
import type { OpenedQueue, QueueServers, QueueSubject } from './queue-subject.ts';
import { inBatches } from './sample-messages.ts';

/** The dispatcher sends the messages itself. */
export const millraceQueue: QueueSubject = {
  name: ours,
  open: (servers) =>
    openLedger(servers, {
      left: `exists (select from core_outbox.ready) or exists (select from core_outbox.retry)
        or exists (select from core_outbox.queued)`,
      async start(ledger, { concurrency, handle }) {
        const dispatcher = createOutboxDispatcher({
          ledger,
          concurrency,
          batchSize: 500,
          deliver: async ({ tenantId = '' }) => handle({ tenantId }),
        });
        await dispatcher.start();
        return dispatcher;
      },
    }),
};

/** The dispatcher passes messages to BullMQ, and a worker sends them. */
export const millraceOverBullMq: QueueSubject = {
  name: `${ours} + BullMQ`,
  async open(servers) {
    const url = await servers.redis();
    return openLedger(servers, {
      left: `exists (select from core_outbox.ready) or exists (select from core_outbox.retry)
        or exists (select from core_outbox.queued)`,
      async start(ledger, { concurrency, handle }) {
        const stack = new AsyncDisposableStack();
        const { queue } = stack.use(await openRedis(url));
        const deliver = async ({ tenantId = '' }: { readonly tenantId?: string | undefined }) =>
          handle({ tenantId });
        const worker = stack.use(createQueueWorker({ ledger, queue, concurrency, deliver }));
        const dispatcher = stack.use(createQueueDispatcher({ ledger, queue, batchSize: 500 }));
        await worker.start();
        await dispatcher.start();
        return { stop: () => stack.disposeAsync() };
      },
    });
  },
};

async function openLedger(
  servers: QueueServers,
  way: {
    /** SQL that is true while a message is left. */
    readonly left: string;
    start(
      ledger: OutboxLedger,
      options: Parameters<OpenedQueue['start']>[0],
    ): ReturnType<OpenedQueue['start']>;
  },
): Promise<OpenedQueue> {
  const url = await servers.postgres();
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  // A separate ledger enqueues, as another process would, so only the database can wake the sender.
  const writer = await openPostgres(url, { connectionsMax: 2, roles: ['outbox'] });
  const db = await openPostgres(url, { roles: ['outbox'] });
  return {
    async enqueue(messages) {
      for (const batch of inBatches(messages)) await writer.outbox.enqueueMany(batch);
    },
    begin: (message) =>
      openTransaction(pool, (client) => writer.outbox.enqueueIn(client, [message])),
    start: (options) => way.start(db.outbox, options),
    async isSettled() {
      const { rows } = await pool.query<{ left: boolean }>(`select ${way.left} as left`);
      return rows[0]?.left === false;
    },
    empty: async () =>
      void (await pool.query(
        'truncate core_outbox.ready, core_outbox.retry, core_outbox.queued, core_outbox.messages, core_outbox.sent',
      )),
    async close() {
      await db[Symbol.asyncDispose]();
      await writer[Symbol.asyncDispose]();
      await pool.end();
    },
  };
}
