// Ours: the ledger in PostgreSQL and the dispatcher that sends directly, both as they come.

import pg from 'pg';
import { postgresOutboxLedger } from '../../src/adapters/postgres/index.ts';
import { createOutboxDispatcher } from '../../src/outbox/index.ts';
import { ours } from '../benchmark.ts';
import { openTransaction } from './open-transaction.ts';
import type { QueueSubject } from './queue-subject.ts';
import { inBatches } from './sample-messages.ts';

export const millraceQueue: QueueSubject = {
  name: ours,
  async open(places) {
    const url = await places.postgres();
    const pool = new pg.Pool({ connectionString: url, max: 2 });
    // Whoever enqueues is another process than the one that sends: it is woken by the database alone.
    const writer = await postgresOutboxLedger(url, { connectionsMax: 2 });
    const ledger = await postgresOutboxLedger(url);
    return {
      async enqueue(messages) {
        for (const batch of inBatches(messages)) await writer.enqueueMany(batch);
      },
      begin: (message) => openTransaction(pool, (client) => writer.enqueueIn(client, [message])),
      async start({ concurrency, handle }) {
        const dispatcher = createOutboxDispatcher({
          ledger,
          concurrency,
          batchSize: 500,
          deliver: async ({ tenantId = '' }) => handle({ tenantId }),
        });
        await dispatcher.start();
        return dispatcher;
      },
      async isSettled() {
        const { rows } = await pool.query<{ left: boolean }>(
          `select exists (select from core_outbox.ready) or exists (select from core_outbox.retry)
             or exists (select from core_outbox.behind) as left`,
        );
        return rows[0]?.left === false;
      },
      empty: async () =>
        void (await pool.query(
          'truncate core_outbox.ready, core_outbox.retry, core_outbox.behind, core_outbox.messages, core_outbox.sent',
        )),
      async close() {
        await ledger[Symbol.asyncDispose]();
        await writer[Symbol.asyncDispose]();
        await pool.end();
      },
    };
  },
};
