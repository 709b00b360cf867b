// The file as an SQL database for subscriptions, sagas, traces and read models: writes go through the writer thread,
// reads run on the calling thread.

import { convertErrors, hasCode, MillraceError } from '../../../foundation/error.ts';
import type { SqlCells, SqlDatabase, SqlDialect } from '../../../store/sql-database.ts';
import type { SqliteReader } from '../store/reader.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../thread/protocol.ts';
import type { SqliteWriter } from '../thread/writer.ts';

/** Runs a read and reports SQLite's errors as MillraceErrors. */
export type SqliteReading = <T>(read: (reader: SqliteReader) => T) => Promise<Awaited<T>>;

export interface SqliteDatabase extends SqlDatabase {
  /** Runs statements with values that only SQLite accepts, and returns rows by column name. */
  readonly commit: (statements: readonly SqlStatement[]) => Promise<readonly (readonly SqlRow[])[]>;
  /** Reads the committed state and returns rows by column name. */
  readonly select: (sql: string, values: readonly SqlValue[]) => Promise<readonly SqlRow[]>;
}

/** SQLite's codes for an SQL error, a read-only database, too big, a constraint, a type or parameter mismatch. */
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
  // SQLite needs no row locks: only one transaction writes at a time.
  shareRow: '',
  takeRow: '',
};

export function sqliteDatabase(writer: SqliteWriter, reading: SqliteReading): SqliteDatabase {
  const checked = <T>(work: () => Promise<T>): Promise<T> => convertErrors(work, statementError);
  const commit: SqliteDatabase['commit'] = (statements) => checked(() => writer.run(statements));
  return {
    dialect,
    commit,
    select: (sql, values) => checked(() => reading((reader) => reader.select(sql, values))),
    run: async (statements) =>
      // The reader sees every commit that was acknowledged before.
      statements.every(isRead)
        ? checked(() =>
            reading((reader) => reader.queries(statements) as unknown as readonly SqlCells[][]),
          )
        : (await commit(statements)).map((rows) =>
            rows.map((row) => Object.values(row) as unknown as SqlCells),
          ),
  };
}

function isRead({ sql, expect }: SqlStatement): boolean {
  return expect === undefined && sql.startsWith('select ');
}

/** SQLite is available but rejects the statements: a retry does not help. */
function statementError(error: unknown): unknown {
  if (!hasCode(error, 'STORE_UNAVAILABLE')) return error;
  const { message, details } = error;
  const isStatement = statementFaults.has(Number(details['sqliteCode']));
  return isStatement
    ? new MillraceError('STORE_UNAVAILABLE', message, { details, cause: error, retryable: false })
    : error;
}
