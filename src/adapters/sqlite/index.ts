export { sqliteEventStore, type SqliteOptions } from './sqlite-event-store.ts';
