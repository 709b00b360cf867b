// What enqueueing in a transaction of the caller's own needs of it: one function that runs a query. The
// adapters beside this file make it of the libraries that most programs have, and import none of them.

import { MillraceError } from '../../foundation/error.ts';

/** Runs a statement with `$1`, `$2`, … in a transaction and resolves to its rows. */
export type TransactionQuery = (
  sql: string,
  values: readonly unknown[],
) => Promise<readonly object[]>;

export function notATransaction(library: string, problem: string, cause?: unknown): MillraceError {
  return new MillraceError('TRANSACTION_INVALID', `${library}: ${problem}`, {
    details: { library },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Libraries differ in whether they answer with the rows or with an object that has them. */
export function rowsOf(library: string, answer: unknown): readonly object[] {
  const rows = hasRows(answer) ? answer.rows : answer;
  if (Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null)) {
    return rows as readonly object[];
  }
  throw notATransaction(library, 'the query did not answer with rows');
}

/** A pool also has `query`, and a client may have none open: both would commit by themselves. */
export function checkClient(client: object): void {
  if ('totalCount' in client) {
    throw notATransaction(
      'pg',
      'a pool is no transaction: check a client out of it, and begin one',
    );
  }
  if (!hasMethod(client, 'getTransactionStatus')) return;
  const driver = client as {
    readonly readyForQuery?: boolean;
    getTransactionStatus(): string | null;
  };
  // While a query is under way, it may be the one that begins the transaction.
  if (driver.readyForQuery === true && driver.getTransactionStatus() === 'I') {
    throw notATransaction('pg', 'no transaction is open on this client');
  }
}

/** As a caller without types may pass anything. */
export function hasMethod(value: unknown, name: string): boolean {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as Readonly<Record<string, unknown>>)[name] === 'function'
  );
}

function hasRows(answer: unknown): answer is { readonly rows: unknown } {
  return typeof answer === 'object' && answer !== null && 'rows' in answer;
}
