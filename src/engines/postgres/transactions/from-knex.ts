// Enqueues in Knex transactions.

import { splitPlaceholders } from './split-placeholders.ts';
import { hasMethod, notATransaction, rowsOf, type TransactionQuery } from './transaction-query.ts';

/** The part of a `Knex.Transaction` that this adapter uses. */
export interface KnexTransaction {
  raw(sql: string, bindings: readonly never[]): PromiseLike<unknown>;
  isCompleted(): boolean;
}

/**
 * Converts a Knex transaction for `enqueueIn`.
 *
 * @example
 * import knex from 'knex';
 * import { fromKnex, openPostgres } from 'millrace/engines/postgres';
 *
 * const url = 'postgres://localhost/shop';
 * const db = knex({ client: 'pg', connection: url });
 * await using engine = await openPostgres(url);
 *
 * await db.transaction(async (trx) => {
 *   await trx('orders').where('id', 'o1').update({ paid: true });
 *   await engine.outbox.enqueueIn(fromKnex(trx), [
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
export function fromKnex(transaction: KnexTransaction): TransactionQuery {
  if (!hasMethod(transaction, 'raw') || !hasMethod(transaction, 'isCompleted')) {
    throw notATransaction('Knex', 'pass a transaction, not the database');
  }
  return async (sql, values) => {
    if (transaction.isCompleted()) throw notATransaction('Knex', 'the transaction has ended');
    const { text, bindings } = knexStatement(sql, values);
    return rowsOf('Knex', await transaction.raw(text, bindings as readonly never[]));
  };
}

/** Knex parameters are `?`, in their order of appearance; other question marks are escaped. */
export function knexStatement(
  sql: string,
  values: readonly unknown[],
): { readonly text: string; readonly bindings: readonly unknown[] } {
  const { texts, indexes } = splitPlaceholders(sql);
  return {
    // The space separates a parameter from an escaped question mark before it.
    text: texts.map((text) => text.replaceAll('?', String.raw`\?`)).join(' ?'),
    // Knex rejects undefined as a missing binding.
    bindings: indexes.map((index) => values[index] ?? null),
  };
}
