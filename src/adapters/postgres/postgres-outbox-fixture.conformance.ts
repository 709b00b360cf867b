// The outbox ledger in PostgreSQL, as its suite wants it: each case a schema of its own.

import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { OutboxLedgerFixture } from '../../outbox/outbox-ledger.conformance.ts';
import { postgresOutboxLedger, type PostgresTransaction } from './postgres-outbox-ledger.ts';

export function postgresOutboxFixture(
  url: string,
  pool: Pool,
): OutboxLedgerFixture<PostgresTransaction> {
  return {
    capabilities: { durable: true, crossProcess: true, callerTransaction: true, streamMode: true },
    async open() {
      const schema = `outbox_${randomUUID().replaceAll('-', '')}`;
      const ledger = await postgresOutboxLedger(url, { schema, connectionsMax: 6 });
      return {
        ledger,
        second: () => postgresOutboxLedger(url, { schema, connectionsMax: 3 }),
        async inTransaction(work) {
          const client = await pool.connect();
          try {
            await client.query('begin');
            await work(client);
            await client.query('commit');
          } catch (error) {
            await client.query('rollback');
            throw error;
          } finally {
            client.release();
          }
        },
        outage: async () => void (await pool.query(`drop table ${schema}.messages cascade`)),
        readRelation: async () =>
          (await pool.query<Record<string, unknown>>(`select * from ${schema}.integration_outbox`))
            .rows,
      };
    },
  };
}
