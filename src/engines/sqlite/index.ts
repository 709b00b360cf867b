export { sqliteBreakerStore, type SqliteBreakerStoreOptions } from './delivery/breaker-store.ts';
export { sqliteBus, type SqliteBusOptions } from './bus/bus.ts';
export { sqliteKeyStore } from './keys/key-store.ts';
export { sqliteWorkQueue, type SqliteWorkQueueOptions } from './queue/queue.ts';
export { sqliteEventStore, type SqliteOptions } from './store/event-store.ts';
export type { SqliteTransaction } from './subscriptions/subscriptions.ts';
export { sqliteInbox, type SqliteInbox, type SqliteInboxOptions } from './inbox/inbox.ts';
export {
  sqliteEndpointHealth,
  type SqliteEndpointHealthOptions,
} from './delivery/endpoint-health.ts';
export {
  sqliteOutboxLedger,
  type SqliteOutboxOptions,
  type SqliteOutboxTransaction,
} from './outbox/ledger.ts';
export { sqliteTasks, type SqliteTasksOptions } from './tasks/tasks.ts';
