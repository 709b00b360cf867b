// Enqueues in interactive transactions of Prisma, or of any object with Prisma's raw queries.

import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** The part of a `Prisma.TransactionClient` that this adapter uses. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
}

/**
 * Converts the client that `prisma.$transaction(async (tx) => …)` passes, for `enqueueIn`.
 *
 * @example
 * import { fromPrisma, openPostgres, type PrismaTransaction } from 'millrace/engines/postgres';
 *
 * // const prisma = new PrismaClient();
 * declare const prisma: {
 *   $transaction(work: (tx: PrismaTransaction) => Promise<void>): Promise<void>;
 * };
 * await using engine = await openPostgres('postgres://localhost/shop');
 *
 * await prisma.$transaction(async (tx) => {
 *   await engine.outbox.enqueueIn(fromPrisma(tx), [
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
export function fromPrisma(transaction: PrismaTransaction): TransactionQuery {
  // Only the main client has $connect; the client of a transaction does not.
  if (!hasMethod(transaction, '$queryRawUnsafe') || hasMethod(transaction, '$connect')) {
    throw notATransaction(
      'Prisma',
      'pass the client of a transaction: $transaction(async (tx) => …)',
    );
  }
  return async (sql, values) => {
    try {
      return rowsOf('Prisma', await transaction.$queryRawUnsafe(sql, ...values));
    } catch (error) {
      throw hasEnded(error) ? notATransaction('Prisma', 'the transaction has ended', error) : error;
    }
  };
}

/** Prisma's code for a transaction that has ended or timed out. */
function hasEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'P2028';
}
