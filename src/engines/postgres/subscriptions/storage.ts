// Subscription storage in the PostgreSQL schema of the event store. A handler that requests a transaction gets a client
// of the pool. The statements of the handler commit together with the mark that the event is processed.

import type { ClientBase, PoolClient } from 'pg';
import { settling, sqlSettlements } from '../../../subscriptions/sql/settlement.ts';
import { sqlSubscriptionStorage } from '../../../subscriptions/sql/storage.ts';
import type {
  EffectTransaction,
  Fence,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';
import { checkOut, translateErrors, type PostgresConnection } from '../connection/connection.ts';
import { sqlErrors, type PostgresDatabase } from '../connection/database.ts';

/** Connections that handlers leave free: two for listeners, one for leases, checkpoints and appends of handlers. */
const connectionsReserved = 3;

export function postgresSubscriptionStorage(
  { pool, database: name }: PostgresConnection,
  database: PostgresDatabase,
): SubscriptionStorage<ClientBase> {
  const settlements = sqlSettlements(database.dialect);
  const takePermit = permits(Math.max(1, pool.options.max - connectionsReserved));

  async function begin(fence: Fence): Promise<EffectTransaction<ClientBase>> {
    const returnPermit = await takePermit();
    let client: PoolClient;
    try {
      client = await translateErrors(() => checkOut(pool));
    } catch (error) {
      returnPermit();
      throw error;
    }
    let hasEnded = false;
    const end = (isBroken: boolean): void => {
      if (hasEnded) return;
      hasEnded = true;
      client.release(isBroken);
      returnPermit();
    };
    try {
      await translateErrors(() => client.query('begin'));
    } catch (error) {
      end(true);
      throw error;
    }
    return {
      transaction: client,
      async commit(settlement) {
        const result = await settling(fence, () =>
          sqlErrors(async () => {
            for (const statement of settlements.statements(fence, settlement)) {
              await database.execute(statement, client);
            }
            await client.query('commit');
          }),
        );
        if (result === 'duplicate') await translateErrors(() => client.query('rollback'));
        end(false);
        return result;
      },
      async rollback(why) {
        if (hasEnded) return;
        // A handler that exceeded its time may still use the client: close the connection instead of reusing it.
        if (why === 'late') return end(true);
        try {
          await translateErrors(() => client.query('rollback'));
          end(false);
        } finally {
          end(true);
        }
      },
    };
  }

  return { ...sqlSubscriptionStorage(database), database: name, begin };
}

/** A semaphore: resolves when a permit is free, with the function that returns the permit. */
function permits(count: number): () => Promise<() => void> {
  let free = count;
  const waiting: (() => void)[] = [];
  const returnPermit = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return returnPermit;
  };
}
