// Enqueues in TypeORM transactions.

import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** The part of an `EntityManager` or a `QueryRunner` that this adapter uses. */
export interface TypeormTransaction {
  query(sql: string, parameters?: unknown[]): Promise<unknown>;
  /** The query runner of a manager. */
  readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined;
  /** Only a query runner has this property. */
  readonly isTransactionActive?: boolean;
}

/**
 * Converts the manager of a TypeORM transaction, or its query runner, for `enqueueIn`.
 *
 * @example
 * import { fromTypeorm, openPostgres } from 'millrace/engines/postgres';
 * import { DataSource } from 'typeorm';
 *
 * const url = 'postgres://localhost/shop';
 * const source = await new DataSource({ type: 'postgres', url }).initialize();
 * await using engine = await openPostgres(url);
 *
 * await source.transaction(async (manager) => {
 *   await manager.query('update orders set paid = true where id = $1', ['o1']);
 *   await engine.outbox.enqueueIn(fromTypeorm(manager), [
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
export function fromTypeorm(transaction: TypeormTransaction): TransactionQuery {
  if (!hasMethod(transaction, 'query')) {
    throw notATransaction('TypeORM', 'pass an EntityManager or a QueryRunner');
  }
  return async (sql, values) => {
    // A manager without a runner uses any connection of the pool, where every statement commits by itself.
    const runner = transaction.queryRunner ?? transaction;
    if (runner.isTransactionActive !== true) {
      throw notATransaction(
        'TypeORM',
        'no transaction is open on this manager or query runner: begin one before enqueueIn',
      );
    }
    return rowsOf('TypeORM', await transaction.query(sql, [...values]));
  };
}
