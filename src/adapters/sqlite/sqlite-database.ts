// The file as an SQL database for what stands beside the events: statements go through the writer thread.

import { hasCode, MillraceError } from '../../foundation/error.ts';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlExpectation,
} from '../../subscriptions/sql-database.ts';
import { unmetText } from './sqlite-error.ts';
import type { SqliteWriter, SqlRow, SqlStatement } from './sqlite-writer.ts';

export interface SqliteDatabase extends SqlDatabase {
  /** As `run`, with values that other databases do not take, and rows by name. */
  readonly commit: (statements: readonly SqlStatement[]) => Promise<readonly (readonly SqlRow[])[]>;
}

/** SQLite's codes for: an SQL error, too big, a constraint, a wrong type, a wrong parameter. */
const statementFaults: ReadonlySet<number> = new Set([1, 18, 19, 20, 25]);

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

export function sqliteDatabase(writer: SqliteWriter): SqliteDatabase {
  const commit: SqliteDatabase['commit'] = async (statements) => {
    try {
      return await writer.run(statements);
    } catch (error) {
      throw unmet(error) ?? refused(error) ?? error;
    }
  };
  return {
    dialect,
    commit,
    run: async (statements) =>
      (await commit(statements)).map((rows) =>
        rows.map((row) => Object.values(row) as unknown as SqlCells),
      ),
  };
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
