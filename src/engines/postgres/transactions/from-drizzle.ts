// Enqueues in Drizzle transactions, on the node-postgres driver or another driver that returns rows.

import { splitPlaceholders } from './split-placeholders.ts';
import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** The part of a `PgTransaction` that this adapter uses; `Statement` is Drizzle's `SQL` class. */
export interface DrizzleTransaction<Statement> {
  execute(query: Statement): PromiseLike<unknown>;
  rollback(): never;
}

/** The part of Drizzle's `sql` that this adapter uses. */
export interface DrizzleSql<Statement> {
  raw(text: string): Statement;
  param(value: unknown): unknown;
  join(chunks: Statement[]): Statement;
  (strings: TemplateStringsArray, ...values: unknown[]): Statement;
}

/**
 * Converts a Drizzle transaction for `enqueueIn`; pass Drizzle's `sql` too.
 *
 * @example
 * import { sql } from 'drizzle-orm';
 * import { drizzle } from 'drizzle-orm/node-postgres';
 * import { fromDrizzle, openPostgres } from 'millrace/engines/postgres';
 * import pg from 'pg';
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/shop' });
 * const db = drizzle({ client: pool });
 * await using engine = await openPostgres(pool);
 *
 * await db.transaction(async (tx) => {
 *   await tx.execute(sql`update orders set paid = true where id = ${'o1'}`);
 *   await engine.outbox.enqueueIn(fromDrizzle(tx, sql), [
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
export function fromDrizzle<Statement>(
  transaction: DrizzleTransaction<Statement>,
  sql: DrizzleSql<Statement>,
): TransactionQuery {
  if (!hasMethod(transaction, 'execute') || !hasMethod(transaction, 'rollback')) {
    throw notATransaction('Drizzle', 'pass a transaction, not the database');
  }
  if (!hasMethod(sql, 'param'))
    throw notATransaction('Drizzle', 'pass its `sql` as the second argument');
  return async (text, values) => {
    // After the transaction, Drizzle would run each statement in a separate commit. The server rejects `lock table`
    // outside a transaction, and every query takes this lock anyway.
    try {
      await transaction.execute(sql.raw(onlyInTransaction));
    } catch (error) {
      throw isOutside(error)
        ? notATransaction('Drizzle', 'the transaction has ended', error)
        : error;
    }
    const { texts, indexes } = splitPlaceholders(text);
    const chunks = texts.flatMap((part, at) => {
      const index = indexes[at];
      const before = sql.raw(part);
      return index === undefined ? [before] : [before, sql`${sql.param(values[index])}`];
    });
    return rowsOf('Drizzle', await transaction.execute(sql.join(chunks)));
  };
}

const onlyInTransaction = 'lock table pg_catalog.pg_class in access share mode';

/** Whether the error is NO_ACTIVE_SQL_TRANSACTION, possibly wrapped by Drizzle. */
function isOutside(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && error.code === '25P01') || isOutside(error.cause);
}
