// Subscriptions in the file of the events: a handler's statements run in the commit that marks its event as processed.

import { settling, sqlSettlements } from '../../../subscriptions/sql/settlement.ts';
import { sqlSubscriptionStorage } from '../../../subscriptions/sql/storage.ts';
import type { SubscriptionStorage } from '../../../subscriptions/subscription-storage.ts';
import type { SqliteFile } from '../connection/file.ts';
import { databaseOf } from '../connection/path.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../thread/protocol.ts';

/** Statements of a handler: they commit together with the mark of its event, or not at all. */
export interface SqliteTransaction {
  /** Queues a statement, which runs after the handler has succeeded, in the order of the calls. */
  run(sql: string, ...values: readonly SqlValue[]): void;
  /** Reads the committed state, without the queued statements of this transaction. */
  query(sql: string, ...values: readonly SqlValue[]): Promise<readonly SqlRow[]>;
}

export function sqliteSubscriptionStorage({
  isDurable,
  path,
  database,
}: Pick<SqliteFile, 'database' | 'isDurable' | 'path'>): SubscriptionStorage<SqliteTransaction> {
  const settlements = sqlSettlements(database.dialect);
  return {
    ...sqlSubscriptionStorage(database),
    capabilities: { transactions: true, durable: isDurable, crossProcess: isDurable },
    database: isDurable ? databaseOf(path) : undefined,
    async begin(fence) {
      const effects: SqlStatement[] = [];
      return {
        transaction: {
          run: (sql, ...values) => void effects.push({ sql, values }),
          query: (sql, ...values) => database.select(sql, values),
        },
        commit: (settlement) =>
          settling(fence, () =>
            database.commit([...settlements.statements(fence, settlement), ...effects]),
          ),
        rollback: async () => undefined,
      };
    },
  };
}
