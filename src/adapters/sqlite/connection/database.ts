// The file as an SQL database for what stands beside the events: what writes goes through the writer
// thread, what only reads is answered on the caller's.

import { hasCode, MillraceError } from '../../../foundation/error.ts';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlExpectation,
} from '../../../subscriptions/sql-database.ts';
import { unmetText } from './error.ts';
import type { SqliteReader } from '../store/reader.ts';
import type { SqliteWriter, SqlRow, SqlStatement, SqlValue } from '../thread/writer.ts';

/** Turns the reader's failures into ours. */
export type SqliteReading = <T>(read: (reader: SqliteReader) => T) => Promise<Awaited<T>>;

export interface SqliteDatabase extends SqlDatabase {
  /** As `run`, with values that other databases do not take, and rows by name. */
  readonly commit: (statements: readonly SqlStatement[]) => Promise<readonly (readonly SqlRow[])[]>;
  /** Rows by name of what is committed now. */
  readonly select: (sql: string, values: readonly SqlValue[]) => Promise<readonly SqlRow[]>;
}

/** SQLite's codes for: an SQL error, a write where one only reads, too big, a constraint, a wrong type or parameter. */
const statementFaults: ReadonlySet<number> = new Set([1, 8, 18, 19, 20, 25]);

export const dialect: SqlDialect = {
  table: (name) => name,
  nowMs: `cast(unixepoch('subsec') * 1000 as integer)`,
  values: (parameter) => `json_each(${parameter})`,
  rows: (parameter, columns) => {
    const cells = Object.keys(columns).map((name) => `json_extract(value, '$.${name}') as ${name}`);
    return `(select ${cells.join(', ')} from json_each(${parameter})) as r`;
  },
  isAmong: (key, selected) => `(${key}) in (select ${key} from ${selected})`,
  // One writer at a time.
  shareRow: '',
  takeRow: '',
};

export function sqliteDatabase(writer: SqliteWriter, reading: SqliteReading): SqliteDatabase {
  const telling = async <T>(asked: Promise<T>): Promise<T> => {
    try {
      return await asked;
    } catch (error) {
      throw unmet(error) ?? refused(error) ?? error;
    }
  };
  const commit: SqliteDatabase['commit'] = (statements) => telling(writer.run(statements));
  return {
    dialect,
    commit,
    select: (sql, values) => telling(reading((reader) => reader.select(sql, values))),
    run: async (statements) =>
      // Whatever was answered before is committed, and the reader sees it.
      statements.every(isQuestion)
        ? telling(
            reading((reader) => reader.queries(statements) as unknown as readonly SqlCells[][]),
          )
        : (await commit(statements)).map((rows) =>
            rows.map((row) => Object.values(row) as unknown as SqlCells),
          ),
  };
}

function isQuestion({ sql, expect }: SqlStatement): boolean {
  return expect === undefined && sql.startsWith('select ');
}

/** The database is there, and does not take these statements: no more than a failed attempt. */
function refused(error: unknown): MillraceError | undefined {
  if (!hasCode(error, 'STORE_UNAVAILABLE')) return undefined;
  const { message, details } = error;
  const isStatement = statementFaults.has(Number(details['sqliteCode']));
  return isStatement
    ? new MillraceError('STORE_UNAVAILABLE', message, { details, cause: error, retryable: false })
    : undefined;
}

function unmet(error: unknown): SqlExpectationFailed | undefined {
  if (!hasCode(error, 'STORE_UNAVAILABLE')) return undefined;
  const { reason } = error.details;
  const what = (['fence', 'new'] as const satisfies SqlExpectation[]).find(
    (each) => reason === unmetText(each),
  );
  return what === undefined ? undefined : new SqlExpectationFailed(what);
}
