// Enqueueing in a transaction of the caller needs one function that runs a query in it. The `from-*` files of this
// folder create that function for common libraries without importing them.

import { MillraceError } from '../../../foundation/error.ts';

/** Runs a statement with `$1`, `$2`, … in a transaction and resolves to its rows. */
export type TransactionQuery = (
  sql: string,
  values: readonly unknown[],
) => Promise<readonly object[]>;

export function notATransaction(library: string, problem: string, cause?: unknown): MillraceError {
  const details = { library };
  return new MillraceError('TRANSACTION_INVALID', `${library}: ${problem}`, { details, cause });
}

/** Some libraries return the rows, others an object with a `rows` property. */
export function rowsOf(library: string, result: unknown): readonly object[] {
  const rows = hasRows(result) ? result.rows : result;
  if (Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null)) {
    return rows as readonly object[];
  }
  throw notATransaction(library, 'the query did not return rows');
}

/** Rejects a pool and a client without an open transaction, because every statement would commit separately. */
export function checkClient(client: object): void {
  if ('totalCount' in client) {
    throw notATransaction(
      'pg',
      'a pool is not a transaction: check out a client and begin a transaction',
    );
  }
  if (!hasMethod(client, 'getTransactionStatus')) return;
  const driver = client as {
    readonly readyForQuery?: boolean;
    getTransactionStatus(): string | null;
  };
  // A running query may be the one that begins the transaction.
  if (driver.readyForQuery === true && driver.getTransactionStatus() === 'I') {
    throw notATransaction(
      'pg',
      'no transaction is open on this client: begin one before enqueueIn',
    );
  }
}

/** Callers without TypeScript may pass any value. */
export function hasMethod(value: unknown, name: string): boolean {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as Readonly<Record<string, unknown>>)[name] === 'function'
  );
}

function hasRows(result: unknown): result is { readonly rows: unknown } {
  return typeof result === 'object' && result !== null && 'rows' in result;
}
