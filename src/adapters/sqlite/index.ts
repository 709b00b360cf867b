export { sqliteEventStore, type SqliteOptions } from './sqlite-event-store.ts';
export type { SqliteTransaction } from './sqlite-subscriptions.ts';
export {
  sqliteOutboxLedger,
  type SqliteOutboxOptions,
  type SqliteOutboxTransaction,
} from './sqlite-outbox-ledger.ts';
