// Converts errors of SQLite to MillraceErrors. A busy file or a full disk is retryable, a corrupt file is not.

import { MillraceError } from '../../../foundation/error.ts';

export interface SqliteFailure {
  readonly message: string;
  /** SQLite's primary result code; undefined: SQLite did not throw the error. */
  readonly sqliteCode?: number | undefined;
  /** A stored value was not what it must be, such as JSON: a retry does not help. */
  readonly isDamaged: boolean;
  readonly cause?: unknown;
}

const codes = { busy: 5, corrupt: 11, full: 13, notADatabase: 26 };

export function describeFailure(error: unknown): SqliteFailure {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  // The low byte is the primary code.
  // SQLite has no separate code for text that its JSON functions refuse.
  const isDamaged = error instanceof SyntaxError || message === 'malformed JSON';
  return { message, isDamaged, sqliteCode: typeof code === 'number' ? code & 0xff : undefined };
}

export function isBusy({ sqliteCode }: SqliteFailure): boolean {
  return sqliteCode === codes.busy;
}

export function sqliteError(
  { message, sqliteCode, isDamaged, cause }: SqliteFailure,
  where: { readonly path: string; readonly doing: 'read' | 'write' },
): MillraceError {
  const reason = sqliteCode === codes.full ? 'the disk is full' : message;
  return new MillraceError(
    isDamaged || sqliteCode === codes.corrupt ? 'STORE_CORRUPT' : 'STORE_UNAVAILABLE',
    `SQLite ${where.doing} failed: ${reason}`,
    {
      ...(sqliteCode === codes.notADatabase ? { retryable: false } : {}),
      cause,
      details: {
        path: where.path,
        reason,
        ...(sqliteCode === undefined ? {} : { sqliteCode }),
      },
    },
  );
}

/** Converts only errors of SQLite: a filter may throw any other error. */
export function readError(error: unknown, path: string): unknown {
  const failure = describeFailure(error);
  return failure.sqliteCode === undefined ? error : sqliteError(failure, { path, doing: 'read' });
}
