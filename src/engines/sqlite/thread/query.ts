// Statements of one connection, each prepared once.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { SqlRow, SqlValue } from './protocol.ts';

export interface SqlQuery {
  readonly all: (sql: string, ...values: readonly SqlValue[]) => readonly SqlRow[];
  readonly one: (sql: string, ...values: readonly SqlValue[]) => SqlRow | undefined;
  /** The first cell; 0 without a row. */
  readonly number: (sql: string, ...values: readonly SqlValue[]) => number;
}

export function createSqlQuery(database: DatabaseSync): SqlQuery {
  const prepared = new Map<string, StatementSync>();

  const all: SqlQuery['all'] = (sql, ...values) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement.all(...values) as unknown as readonly SqlRow[];
  };
  const one: SqlQuery['one'] = (sql, ...values) => all(sql, ...values)[0];
  return {
    all,
    one,
    number: (sql, ...values) => Number(Object.values(one(sql, ...values) ?? { none: 0 })[0] ?? 0),
  };
}
