// A transaction of TypeORM's.

import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** What we need of an `EntityManager` or a `QueryRunner`. */
export interface TypeormTransaction {
  query(sql: string, parameters?: unknown[]): Promise<unknown>;
  /** Of a manager: the runner that it belongs to. */
  readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined;
  /** Of a runner. */
  readonly isTransactionActive?: boolean;
}

/**
 * For `enqueueIn`: the manager of a TypeORM transaction, or its query runner.
 *
 * @example
 * import { fromTypeorm, postgresOutboxLedger } from 'millrace/adapters/postgres';
 * import { DataSource } from 'typeorm';
 *
 * const url = 'postgres://localhost/shop';
 * const source = await new DataSource({ type: 'postgres', url }).initialize();
 * await using outbox = await postgresOutboxLedger(url);
 *
 * await source.transaction(async (manager) => {
 *   await manager.query('update orders set paid = true where id = $1', ['o1']);
 *   await outbox.enqueueIn(fromTypeorm(manager), [
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
    throw notATransaction('TypeORM', 'an EntityManager or a QueryRunner is needed');
  }
  return async (sql, values) => {
    // A manager without one takes any connection of the pool, which commits by itself.
    const runner = transaction.queryRunner ?? transaction;
    if (runner.isTransactionActive !== true) {
      throw notATransaction('TypeORM', 'no transaction is open on this manager or runner');
    }
    return rowsOf('TypeORM', await transaction.query(sql, [...values]));
  };
}
