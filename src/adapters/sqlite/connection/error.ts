// SQLite's errors as ours: the machine's trouble can be tried again, a broken file cannot.

import { MillraceError } from '../../../foundation/error.ts';

/** An error in a form that travels between threads. */
export interface SqliteFailure {
  readonly message: string;
  /** SQLite's primary result code, where it has one. */
  readonly sqliteCode?: number;
}

const codes = { busy: 5, corrupt: 11, full: 13, notADatabase: 26 };

export function describeFailure(error: unknown): SqliteFailure {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  // The low byte is the primary code.
  return typeof code === 'number' ? { message, sqliteCode: code & 0xff } : { message };
}

export function isBusy({ sqliteCode }: SqliteFailure): boolean {
  return sqliteCode === codes.busy;
}

export function sqliteError(
  { message, sqliteCode }: SqliteFailure,
  where: { readonly path: string; readonly doing: 'read' | 'write' },
): MillraceError {
  const reason = sqliteCode === codes.full ? 'the disk is full' : message;
  return new MillraceError(
    sqliteCode === codes.corrupt ? 'STORE_CORRUPT' : 'STORE_UNAVAILABLE',
    `the database did not take the ${where.doing}: ${reason}`,
    {
      ...(sqliteCode === codes.notADatabase ? { retryable: false } : {}),
      details: {
        path: where.path,
        reason,
        ...(sqliteCode === undefined ? {} : { sqliteCode }),
      },
    },
  );
}

/** How the writer thread says that a statement's expectation was not met. */
export function unmetText(what: string): string {
  return `expectation not met: ${what}`;
}
