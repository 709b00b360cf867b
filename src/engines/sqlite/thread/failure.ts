// Errors on their way out of the writer thread: a class does not survive the copy between threads, so each kind
// crosses as data and is recognised by its kind and code, never by its text.

import type { ErrorCode } from '../../../foundation/error-codes.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { SqlExpectationFailed, type SqlExpectation } from '../../../store/sql-database.ts';
import { describeFailure, sqliteError } from '../connection/error.ts';

export type WriterFailure =
  | { readonly kind: 'sqlite'; readonly sqliteCode: number; readonly message: string }
  | { readonly kind: 'expectation'; readonly what: SqlExpectation }
  | {
      readonly kind: 'millrace';
      readonly code: ErrorCode;
      readonly message: string;
      readonly retryable: boolean;
      readonly details: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'unexpected'; readonly message: string; readonly stack: string | undefined };

/** In the writer thread. */
export function toFailure(error: unknown): WriterFailure {
  if (error instanceof SqlExpectationFailed) return { kind: 'expectation', what: error.what };
  if (error instanceof MillraceError) {
    const { code, message, retryable, details } = error;
    return { kind: 'millrace', code, message, retryable, details };
  }
  const { message, sqliteCode } = describeFailure(error);
  if (sqliteCode !== undefined) return { kind: 'sqlite', sqliteCode, message };
  return {
    kind: 'unexpected',
    message,
    stack: error instanceof Error ? error.stack : undefined,
  };
}

/** On the calling thread. */
export function fromFailure(failure: WriterFailure, path: string): Error {
  switch (failure.kind) {
    case 'expectation':
      return new SqlExpectationFailed(failure.what);
    case 'millrace': {
      const { code, message, retryable, details } = failure;
      return new MillraceError(code, message, { retryable, details });
    }
    case 'sqlite':
      return sqliteError(failure, { path, doing: 'write' });
    default: {
      const { message, stack } = failure;
      const cause = Object.assign(new Error(message), { stack: stack ?? message });
      return sqliteError({ message, cause }, { path, doing: 'write' });
    }
  }
}
