// The outbox ledger in PostgreSQL for its conformance suite: the cases share a pool and reuse schemas.

import type { Pool } from 'pg';
import type { OutboxLedgerFixture } from '../outbox/outbox-ledger.ts';
import { inTransaction } from '../../../engines/postgres/connection/connection.ts';
import { openPostgres, type PostgresOptions } from '../../../engines/postgres/open-postgres.ts';
import type { PostgresTransaction } from '../../../engines/postgres/outbox/ledger.ts';
import { migratePostgresOutbox } from '../../../engines/postgres/outbox/schema.ts';
import { ownedRole } from '../../owned-role.ts';
import { sharedSchemas } from './postgres-shared-schema.ts';

/** The pool needs six connections: for a ledger and for the caller's transactions. */
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
      const openLedger = async (target: Pool | string, options: PostgresOptions) =>
        ownedRole(
          await openPostgres(target, { ...options, outboxSchema: schema, roles: ['outbox'] }),
          'outbox',
        );
      return {
        ledger: await openLedger(pool, { migrate: 'off' }),
        second: () => openLedger(url, { connectionsMax: 3 }),
        inTransaction: (work) => inTransaction(pool, work),
        async outage() {
          isIntact = false;
          await pool.query(`drop table ${schema}.messages cascade`);
        },
        async damage(id, column, text) {
          await pool.query(`update ${schema}.messages set ${column} = $2 where id = $1`, [
            id,
            text,
          ]);
        },
        readRelation: async () =>
          (await pool.query<Record<string, unknown>>(`select * from ${schema}.integration_outbox`))
            .rows,
        async close() {
          if (isIntact) schemas.release(schema);
        },
      };
    },
  };
}
