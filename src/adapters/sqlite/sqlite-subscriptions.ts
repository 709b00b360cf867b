// Subscriptions in the events' own file: their writes go through the same thread, and a handler's
// statements into the commit that marks its event as done.

import { hasCode, MillraceError } from '../../foundation/error.ts';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlExpectation,
} from '../../subscriptions/sql-database.ts';
import { settling, sqlSettlements } from '../../subscriptions/sql-settlement.ts';
import { sqlSubscriptionStorage } from '../../subscriptions/sql-subscription-storage.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { unmetText } from './sqlite-error.ts';
import type { SqliteWriter, SqlRow, SqlStatement, SqlValue } from './sqlite-writer.ts';

/** What a handler has its effects in: statements that commit with the mark, or not at all. */
export interface SqliteTransaction {
  /** Runs when the handler has succeeded, in the order of the calls. */
  run(sql: string, ...values: readonly SqlValue[]): void;
  /** What is committed now; it does not see this transaction's own statements. */
  query(sql: string, ...values: readonly SqlValue[]): Promise<readonly SqlRow[]>;
}

/** SQLite's codes for: an SQL error, too big, a constraint, a wrong type, a wrong parameter. */
const statementFaults: ReadonlySet<number> = new Set([1, 18, 19, 20, 25]);

const dialect: SqlDialect = {
  table: (name) => name,
  nowMs: `cast(unixepoch('subsec') * 1000 as integer)`,
  values: (parameter) => `json_each(${parameter})`,
  rows: (parameter, columns) => {
    const cells = Object.keys(columns).map((name) => `json_extract(value, '$.${name}') as ${name}`);
    return `(select ${cells.join(', ')} from json_each(${parameter})) as r`;
  },
  // One writer at a time.
  shareRow: '',
  takeRow: '',
};

/** The events' own file as the shared SQL sees it. */
export function sqliteDatabase(writer: SqliteWriter): SqlDatabase {
  return {
    dialect,
    run: async (statements) =>
      (await commit(writer, statements)).map((rows) =>
        rows.map((row) => Object.values(row) as unknown as SqlCells),
      ),
  };
}

async function commit(
  writer: SqliteWriter,
  statements: readonly SqlStatement[],
): Promise<readonly (readonly SqlRow[])[]> {
  try {
    return await writer.run(statements);
  } catch (error) {
    throw unmet(error) ?? refused(error) ?? error;
  }
}

export function sqliteSubscriptionStorage(
  writer: SqliteWriter,
): SubscriptionStorage<SqliteTransaction> {
  const database = sqliteDatabase(writer);
  const settlements = sqlSettlements(dialect);
  return {
    ...sqlSubscriptionStorage(database),
    async begin(fence) {
      const effects: SqlStatement[] = [];
      return {
        transaction: {
          run: (sql, ...values) => void effects.push({ sql, values }),
          async query(sql, ...values) {
            const [rows = []] = await writer.run([{ sql, values }]);
            return rows;
          },
        },
        commit: (settlement) =>
          settling(fence, () =>
            commit(writer, [...settlements.statements(fence, settlement), ...effects]),
          ),
        rollback: async () => undefined,
      };
    },
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
