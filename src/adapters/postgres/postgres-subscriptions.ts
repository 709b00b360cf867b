// Subscriptions in the events' own schema. A handler that asks for a transaction gets a client of the
// pool; the mark that its event is done commits with whatever it did there.

import { createHash } from 'node:crypto';
import type { ClientBase, PoolClient } from 'pg';
import {
  SqlExpectationFailed,
  type SqlCells,
  type SqlDatabase,
  type SqlDialect,
  type SqlStatement,
} from '../../subscriptions/sql-database.ts';
import { settling, sqlSettlements } from '../../subscriptions/sql-settlement.ts';
import { sqlSubscriptionStorage } from '../../subscriptions/sql-subscription-storage.ts';
import type {
  EffectTransaction,
  Fence,
  SubscriptionStorage,
} from '../../subscriptions/subscription-storage.ts';
import {
  askPostgres,
  checkOut,
  unavailable,
  type PostgresConnection,
  type PreparedSql,
} from './postgres-connection.ts';
import { createPermits } from './permits.ts';
import { quoteName } from './postgres-schema.ts';

/** Leases and checkpoints must find a connection, whatever handlers do. */
const connectionsKept = 2;

/** The events' own schema as the shared SQL sees it. */
export function postgresDatabase(connection: PostgresConnection, schema: string): SqlDatabase {
  const execute = createExecute(connection);

  async function together(statements: readonly SqlStatement[]): Promise<(readonly SqlCells[])[]> {
    const client = await checkOut(connection.pool);
    let isBroken = true;
    try {
      await client.query('begin');
      const results: (readonly SqlCells[])[] = [];
      try {
        for (const statement of statements) results.push(await execute(statement, client));
      } catch (error) {
        await client.query('rollback');
        isBroken = false;
        throw error;
      }
      await client.query('commit');
      isBroken = false;
      return results;
    } finally {
      client.release(isBroken);
    }
  }

  return {
    dialect: dialectIn(schema),
    async run(statements) {
      const [only] = statements;
      try {
        if (only !== undefined && statements.length === 1) return [await execute(only)];
        return await together(statements);
      } catch (error) {
        throw error instanceof SqlExpectationFailed ? error : unavailable(error);
      }
    },
  };
}

type Execute = (statement: SqlStatement, on?: PoolClient) => Promise<readonly SqlCells[]>;

function createExecute(connection: PostgresConnection): Execute {
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

  return async ({ sql, values, expect }, on) => {
    const rows = (await connection.query(prepare(sql), values, on)) as readonly SqlCells[];
    if (expect !== undefined && rows.length !== expect.rows) {
      throw new SqlExpectationFailed(expect.what);
    }
    return rows;
  };
}

export function postgresSubscriptionStorage(
  connection: PostgresConnection,
  schema: string,
): SubscriptionStorage<ClientBase> {
  const { pool } = connection;
  const database = postgresDatabase(connection, schema);
  const execute = createExecute(connection);
  const settlements = sqlSettlements(database.dialect);
  const permits = createPermits(Math.max(1, (pool.options.max ?? 10) - connectionsKept));

  async function begin(fence: Fence): Promise<EffectTransaction<ClientBase>> {
    const free = await permits.take();
    let client: PoolClient;
    try {
      client = await askPostgres(() => checkOut(pool));
    } catch (error) {
      free();
      throw error;
    }
    let isOver = false;
    const end = (broken: boolean): void => {
      if (isOver) return;
      isOver = true;
      client.release(broken);
      free();
    };
    try {
      await askPostgres(() => client.query('begin'));
    } catch (error) {
      end(true);
      throw error;
    }
    return {
      transaction: client,
      async commit(settlement) {
        const result = await settling(fence, async () => {
          try {
            for (const each of settlements.statements(fence, settlement)) {
              await execute(each, client);
            }
            await client.query('commit');
          } catch (error) {
            throw error instanceof SqlExpectationFailed ? error : unavailable(error);
          }
        });
        if (result === 'repeated') await askPostgres(() => client.query('rollback'));
        end(false);
        return result;
      },
      async rollback(why) {
        if (isOver) return;
        // A handler that is late may still use the client: it must find it closed.
        if (why === 'late') return end(true);
        try {
          await askPostgres(() => client.query('rollback'));
          end(false);
        } finally {
          end(true);
        }
      },
    };
  }

  // The columns and parameters are all text and numbers.
  return { ...sqlSubscriptionStorage(database), begin };
}

function dialectIn(schema: string): SqlDialect {
  return {
    table: (name) => `${quoteName(schema)}.${name}`,
    // Of the server: the clocks of the processes may differ.
    nowMs: 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)',
    values: (parameter) => `json_array_elements_text(cast(${parameter} as json))`,
    rows: (parameter, columns) => {
      const cells = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
      return `json_to_recordset(cast(${parameter} as json)) as r(${cells.join(', ')})`;
    },
    // Lets the lease be renewed meanwhile, but not taken over.
    shareRow: ' for key share',
    takeRow: ' for update',
  };
}
