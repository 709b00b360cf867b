// The outbox ledger in PostgreSQL for its suite: the cases share a pool, and one after the other a schema.

import type { Pool } from 'pg';
import type { OutboxLedgerFixture } from '../../outbox/outbox-ledger.conformance.ts';
import { postgresOutboxLedger, type PostgresTransaction } from './postgres-outbox-ledger.ts';
import { migratePostgresOutbox } from './postgres-outbox-schema.ts';
import { sharedSchemas } from './postgres-shared-schema.conformance.ts';

/** The pool needs six connections for a ledger and those of its caller. */
export function postgresOutboxFixture(
  url: string,
  pool: Pool,
): OutboxLedgerFixture<PostgresTransaction> {
  const schemas = sharedSchemas(pool, migratePostgresOutbox);
  return {
    capabilities: { durable: true, crossProcess: true, callerTransaction: true },
    async open() {
      const schema = await schemas.take();
      let isIntact = true;
      return {
        ledger: await postgresOutboxLedger(pool, { schema, migrate: 'off' }),
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
        async outage() {
          isIntact = false;
          await pool.query(`drop table ${schema}.messages cascade`);
        },
        readRelation: async () =>
          (await pool.query<Record<string, unknown>>(`select * from ${schema}.integration_outbox`))
            .rows,
        async close() {
          if (isIntact) schemas.giveBack(schema);
        },
      };
    },
  };
}
