// The storage of subscriptions on an SQL database: everything but the transaction that a handler gets.

import { sqlCheckpoints } from './sql-checkpoints.ts';
import type { SqlDatabase } from './sql-database.ts';
import { sqlDeadLetters } from './sql-dead-letters.ts';
import { sqlLeases, sqlTokens } from './sql-leases.ts';
import { sqlProcessed } from './sql-processed.ts';
import { settling, sqlSettlements } from './sql-settlement.ts';
import { sqlWaiting } from './sql-waiting.ts';
import type { SubscriptionStorage } from './subscription-storage.ts';

export function sqlSubscriptionStorage(database: SqlDatabase): Omit<SubscriptionStorage, 'begin'> {
  const settlements = sqlSettlements(database.dialect);
  return {
    capabilities: { transactions: true, durable: true, crossProcess: true },
    checkpoints: sqlCheckpoints(database),
    processed: sqlProcessed(database),
    deadLetters: sqlDeadLetters(database),
    waiting: sqlWaiting(database),
    leases: sqlLeases(database),
    tokens: sqlTokens(database),
    settle: (fence, settlement) =>
      settling(fence, () => database.run(settlements.statements(fence, settlement))),
  };
}
