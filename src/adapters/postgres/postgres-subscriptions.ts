// Subscriptions in the events' own schema. A handler that asks for a transaction gets a client of the
// pool; the mark that its event is done commits with whatever it did there.

import type { ClientBase, PoolClient } from 'pg';
import { SqlExpectationFailed } from '../../subscriptions/sql-database.ts';
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
} from './postgres-connection.ts';
import { createPermits } from './permits.ts';
import type { PostgresDatabase } from './postgres-database.ts';

/** Leases and checkpoints must find a connection, whatever handlers do. */
const connectionsKept = 2;

export function postgresSubscriptionStorage(
  { pool }: PostgresConnection,
  database: PostgresDatabase,
): SubscriptionStorage<ClientBase> {
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
              await database.execute(each, client);
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
