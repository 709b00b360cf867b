// An interactive transaction of Prisma's, or of whatever else has its raw queries.

import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** What we need of a `Prisma.TransactionClient`. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
}

/**
 * For `enqueueIn`: the client that `prisma.$transaction(async (tx) => …)` gives.
 *
 * @example
 * import { fromPrisma, postgresOutboxLedger, type PrismaTransaction } from 'millrace/adapters/postgres';
 *
 * // const prisma = new PrismaClient();
 * declare const prisma: {
 *   $transaction(work: (tx: PrismaTransaction) => Promise<void>): Promise<void>;
 * };
 * await using outbox = await postgresOutboxLedger('postgres://localhost/shop');
 *
 * await prisma.$transaction(async (tx) => {
 *   await outbox.enqueueIn(fromPrisma(tx), [
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
  // The client of a transaction cannot connect: only the whole one can.
  if (!hasMethod(transaction, '$queryRawUnsafe') || hasMethod(transaction, '$connect')) {
    throw notATransaction(
      'Prisma',
      'the client of a transaction is needed: $transaction(async (tx) => …)',
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

/** Prisma's code for a transaction that is over, by a commit or by its timeout. */
function hasEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'P2028';
}
