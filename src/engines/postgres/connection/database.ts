// The PostgreSQL schema as an `SqlDatabase` for subscriptions, read models, sagas and traces.

import { createHash } from 'node:crypto';
import type { ClientBase, PoolClient } from 'pg';
import { convertErrors } from '../../../foundation/error.ts';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlStatement,
} from '../../../store/sql-database.ts';
import {
  inTransaction,
  unavailable,
  type PostgresConnection,
  type PreparedSql,
} from './connection.ts';
import { quoteName } from './schema.ts';

export type Execute = (statement: SqlStatement) => Promise<readonly SqlCells[]>;

export interface PostgresDatabase extends SqlDatabase {
  /** Runs a statement on the client of a transaction, or without a client in a separate commit. */
  readonly execute: (
    statement: SqlStatement,
    on?: Pick<ClientBase, 'query'>,
  ) => Promise<readonly SqlCells[]>;
  /** Commits when the work resolves, and rolls back when it rejects. */
  readonly transact: <T>(work: (execute: Execute, client: PoolClient) => Promise<T>) => Promise<T>;
}

export function postgresDatabase(connection: PostgresConnection, schema: string): PostgresDatabase {
  const prepared = new Map<string, PreparedSql>();

  function prepare(sql: string): PreparedSql {
    let known = prepared.get(sql);
    if (known === undefined) {
      const text = sql.replaceAll(/\?(\d+)/g, '$$$1');
      known = { name: createHash('sha256').update(text).digest('hex').slice(0, 40), text };
      prepared.set(sql, known);
    }
    return known;
  }

  async function execute(
    { sql, values, expect }: SqlStatement,
    on?: Pick<ClientBase, 'query'>,
  ): Promise<readonly SqlCells[]> {
    const rows = (await connection.query(prepare(sql), values, on)) as readonly SqlCells[];
    if (expect !== undefined && rows.length !== expect.rows) {
      throw new SqlExpectationFailed(expect.what);
    }
    return rows;
  }

  async function transact<T>(
    work: (execute: Execute, client: PoolClient) => Promise<T>,
  ): Promise<T> {
    return sqlErrors(() =>
      inTransaction(connection.pool, (client) =>
        work((statement) => execute(statement, client), client),
      ),
    );
  }

  return {
    dialect: dialectIn(schema),
    execute,
    transact,
    async run(statements) {
      const [only] = statements;
      if (only !== undefined && statements.length === 1) {
        return [await sqlErrors(() => execute(only))];
      }
      return transact(async (step) => {
        const results: (readonly SqlCells[])[] = [];
        for (const statement of statements) results.push(await step(statement));
        return results;
      });
    },
  };
}

/** Converts errors like `translateErrors`, but leaves a failed expectation to the caller. */
export function sqlErrors<T>(work: () => Promise<T>): Promise<T> {
  return convertErrors(work, (error) =>
    error instanceof SqlExpectationFailed ? error : unavailable(error),
  );
}

export function dialectIn(schema: string): SqlDialect {
  return {
    table: (name) => `${quoteName(schema)}.${name}`,
    // Use the clock of the server, because the clocks of the processes may differ.
    nowMs: 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)',
    values: (parameter) => `json_array_elements_text(cast(${parameter} as json))`,
    rows: (parameter, columns) => {
      const cells = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
      return `json_to_recordset(cast(${parameter} as json)) as r(${cells.join(', ')})`;
    },
    // Select rows by ctid: a join on the key may be planned as a sequential scan.
    isAmong: (_key, selected) => `ctid = any(array(select ctid from ${selected}))`,
    // This lock permits renewing the lease and blocks taking it over.
    shareRow: ' for key share',
    takeRow: ' for update',
  };
}
