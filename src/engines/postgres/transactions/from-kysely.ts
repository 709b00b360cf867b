// Enqueues in Kysely transactions.

import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** The part of Kysely's `Transaction` that this adapter uses. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  withoutPlugins(): {
    executeQuery(query: KyselyQuery): Promise<{ readonly rows: unknown[] }>;
  };
}

/** A compiled query in the shape of `CompiledQuery.raw`. */
export interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: 'RawNode';
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

let queries = 0;

/**
 * Converts a Kysely transaction for `enqueueIn`.
 *
 * @example
 * import { Kysely, PostgresDialect } from 'kysely';
 * import { fromKysely, openPostgres } from 'millrace/engines/postgres';
 * import pg from 'pg';
 *
 * interface Shop {
 *   orders: { id: string; paid: boolean };
 * }
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/shop' });
 * const db = new Kysely<Shop>({ dialect: new PostgresDialect({ pool }) });
 * await using engine = await openPostgres(pool);
 *
 * await db.transaction().execute(async (tx) => {
 *   await tx.updateTable('orders').set({ paid: true }).where('id', '=', 'o1').execute();
 *   await engine.outbox.enqueueIn(fromKysely(tx), [
 *     {
 *       sourceStreamId: 'orders-o1',
 *       sourceEventId: 'o1-paid',
 *       integrationType: 'webhook:partner-x',
 *       eventType: 'order.paid.v1',
 *       payload: { orderId: 'o1' },
 *     },
 *   ]);
 * });
 */
export function fromKysely(transaction: KyselyTransaction): TransactionQuery {
  if (!hasMethod(transaction, 'withoutPlugins') || !transaction.isTransaction) {
    throw notATransaction('Kysely', 'pass a Transaction, not the database');
  }
  return async (sql, parameters) => {
    queries += 1;
    const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] } as const;
    const queryId = { queryId: `millrace-${queries}` };
    // Plugins may rename the columns of the result.
    const plain = transaction.withoutPlugins();
    try {
      return rowsOf('Kysely', await plain.executeQuery({ sql, parameters, query, queryId }));
    } catch (error) {
      // Kysely's errors have no code.
      const hasEnded =
        error instanceof Error && error.message.startsWith('Transaction is already ');
      throw hasEnded ? notATransaction('Kysely', 'the transaction has ended', error) : error;
    }
  };
}
