export { openSqlite, type SqliteEngine, type SqliteOptions } from './open-sqlite.ts';
export { sqliteInbox, type SqliteInbox, type SqliteInboxOptions } from './inbox/inbox.ts';
export type { SqliteOutboxTransaction } from './outbox/ledger.ts';
export type { SqliteTransaction } from './subscriptions/subscriptions.ts';
