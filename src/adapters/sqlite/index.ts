export { sqliteBreakerStore, type SqliteBreakerStoreOptions } from './sqlite-breaker-store.ts';
export { sqliteBus, type SqliteBusOptions } from './sqlite-bus.ts';
export { sqliteKeyStore } from './sqlite-key-store.ts';
export { sqliteWorkQueue, type SqliteWorkQueueOptions } from './sqlite-work-queue.ts';
export { sqliteEventStore, type SqliteOptions } from './sqlite-event-store.ts';
export type { SqliteTransaction } from './sqlite-subscriptions.ts';
export { sqliteInbox, type SqliteInbox, type SqliteInboxOptions } from './sqlite-inbox.ts';
export {
  sqliteEndpointHealth,
  type SqliteEndpointHealthOptions,
} from './sqlite-endpoint-health.ts';
export {
  sqliteOutboxLedger,
  type SqliteOutboxOptions,
  type SqliteOutboxTransaction,
} from './sqlite-outbox-ledger.ts';
export { sqliteTasks, type SqliteTasksOptions } from './sqlite-tasks.ts';
