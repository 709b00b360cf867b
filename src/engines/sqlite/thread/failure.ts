// Errors of the writer thread as data, because a class does not survive the copy between threads. The calling thread
// recognises an error by its kind and code, never by its message.

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
  | {
      readonly kind: 'unexpected';
      readonly isDamaged: boolean;
      readonly message: string;
      readonly stack: string | undefined;
    };

/** Converts an error to data; the writer thread calls it. */
export function toFailure(error: unknown): WriterFailure {
  if (error instanceof SqlExpectationFailed) return { kind: 'expectation', what: error.what };
  if (error instanceof MillraceError) {
    const { code, message, retryable, details } = error;
    return { kind: 'millrace', code, message, retryable, details };
  }
  const { message, sqliteCode, isDamaged } = describeFailure(error);
  if (sqliteCode !== undefined && !isDamaged) return { kind: 'sqlite', sqliteCode, message };
  return {
    kind: 'unexpected',
    isDamaged,
    message,
    stack: error instanceof Error ? error.stack : undefined,
  };
}

/** Converts the data to an error; the calling thread calls it. */
export function fromFailure(failure: WriterFailure, path: string): Error {
  switch (failure.kind) {
    case 'expectation':
      return new SqlExpectationFailed(failure.what);
    case 'millrace': {
      const { code, message, retryable, details } = failure;
      return new MillraceError(code, message, { retryable, details });
    }
    case 'sqlite':
      return sqliteError({ ...failure, isDamaged: false }, { path, doing: 'write' });
    default: {
      const { message, stack, isDamaged } = failure;
      const cause = Object.assign(new Error(message), { stack: stack ?? message });
      return sqliteError({ message, cause, isDamaged }, { path, doing: 'write' });
    }
  }
}
