// The schema as an SQL database for what stands beside the events: statements that commit together, on a
// connection of the pool.

import { createHash } from 'node:crypto';
import type { ClientBase, PoolClient } from 'pg';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlStatement,
} from '../../subscriptions/sql-database.ts';
import {
  checkOut,
  unavailable,
  type PostgresConnection,
  type PreparedSql,
} from './postgres-connection.ts';
import { quoteName } from './postgres-schema.ts';

export type Execute = (statement: SqlStatement) => Promise<readonly SqlCells[]>;

export interface PostgresDatabase extends SqlDatabase {
  /** On a client of somebody's transaction; without one, by itself. */
  readonly execute: (
    statement: SqlStatement,
    on?: Pick<ClientBase, 'query'>,
  ) => Promise<readonly SqlCells[]>;
  /** Commits what was done when the work is done, and nothing when it fails. */
  readonly together: <T>(work: (execute: Execute, client: PoolClient) => Promise<T>) => Promise<T>;
}

export function postgresDatabase(connection: PostgresConnection, schema: string): PostgresDatabase {
  const { pool } = connection;
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

  async function together<T>(
    work: (execute: Execute, client: PoolClient) => Promise<T>,
  ): Promise<T> {
    const client = await checkOut(pool);
    let isBroken = true;
    try {
      await client.query('begin');
      let result: T;
      try {
        result = await work((statement) => execute(statement, client), client);
      } catch (error) {
        await client.query('rollback');
        isBroken = false;
        throw error;
      }
      await client.query('commit');
      isBroken = false;
      return result;
    } finally {
      client.release(isBroken);
    }
  }

  const asking = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw error instanceof SqlExpectationFailed ? error : unavailable(error);
    }
  };

  return {
    dialect: dialectIn(schema),
    execute,
    together: (work) => asking(() => together(work)),
    run: (statements) =>
      asking(async () => {
        const [only] = statements;
        if (only !== undefined && statements.length === 1) return [await execute(only)];
        return together(async (step) => {
          const results: (readonly SqlCells[])[] = [];
          for (const statement of statements) results.push(await step(statement));
          return results;
        });
      }),
  };
}

export function dialectIn(schema: string): SqlDialect {
  return {
    table: (name) => `${quoteName(schema)}.${name}`,
    // Of the server: the clocks of the processes may differ.
    nowMs: 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)',
    values: (parameter) => `json_array_elements_text(cast(${parameter} as json))`,
    rows: (parameter, columns) => {
      const cells = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
      return `json_to_recordset(cast(${parameter} as json)) as r(${cells.join(', ')})`;
    },
    // By its place on disk: a join by the key may be planned as a scan of the whole table.
    isAmong: (_key, selected) => `ctid = any(array(select ctid from ${selected}))`,
    // Lets the lease be renewed meanwhile, but not taken over.
    shareRow: ' for key share',
    takeRow: ' for update',
  };
}
