import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import pg from 'pg';
import { outboxLedgerConformance } from '../../outbox/outbox-ledger.conformance.ts';
import { sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { postgresOutboxLedger, type PostgresTransaction } from './postgres-outbox-ledger.ts';

const { url } = await sharedPostgres();
const pool = new pg.Pool({ connectionString: url, max: 4 });
after(() => pool.end());

for (const { name, skip, run } of outboxLedgerConformance<PostgresTransaction>({
  capabilities: { durable: true, crossProcess: true, callerTransaction: true },
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
})) {
  test(`outbox in PostgreSQL: ${name}`, { skip: skip ?? false }, run);
}
