// Statements of the bus inside the writer thread, each prepared once.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { SqlRow, SqlValue } from './writer.ts';

export interface BusQuery {
  readonly all: (sql: string, ...values: readonly SqlValue[]) => readonly SqlRow[];
  readonly one: (sql: string, ...values: readonly SqlValue[]) => SqlRow | undefined;
  /** The first cell; 0 where there is none. */
  readonly number: (sql: string, ...values: readonly SqlValue[]) => number;
  readonly head: () => number;
  readonly streamId: (subject: string) => number | undefined;
}

export function createBusQuery(database: DatabaseSync): BusQuery {
  const prepared = new Map<string, StatementSync>();

  const all: BusQuery['all'] = (sql, ...values) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement.all(...values) as unknown as readonly SqlRow[];
  };
  const one: BusQuery['one'] = (sql, ...values) => all(sql, ...values)[0];
  const number: BusQuery['number'] = (sql, ...values) =>
    Number(Object.values(one(sql, ...values) ?? { none: 0 })[0] ?? 0);
  return {
    all,
    one,
    number,
    head: () => number('select max(seq) from bus_messages'),
    streamId(subject) {
      const row = one('select id from bus_streams where subject = ?', subject);
      return row === undefined ? undefined : Number(row['id']);
    },
  };
}
