export {
  postgresBreakerStore,
  type PostgresBreakerStoreOptions,
} from './delivery/breaker-store.ts';
export { postgresEventStore, type PostgresOptions } from './store/event-store.ts';
export type { PostgresMigration } from './connection/schema.ts';
export { migratePostgres, postgresMigrations } from './store/schema.ts';
export { postgresInbox, type InboxClient, type PostgresInbox } from './delivery/inbox.ts';
export {
  postgresEndpointHealth,
  type PostgresEndpointHealthOptions,
} from './delivery/endpoint-health.ts';
export {
  postgresOutboxLedger,
  type PostgresOutboxOptions,
  type PostgresTransaction,
} from './outbox/ledger.ts';
export { migratePostgresOutbox, postgresOutboxMigrations } from './outbox/schema.ts';
export {
  fromDrizzle,
  type DrizzleSql,
  type DrizzleTransaction,
} from './transactions/from-drizzle.ts';
export { fromKnex, type KnexTransaction } from './transactions/from-knex.ts';
export {
  fromKysely,
  type KyselyQuery,
  type KyselyTransaction,
} from './transactions/from-kysely.ts';
export { fromPrisma, type PrismaTransaction } from './transactions/from-prisma.ts';
export { fromTypeorm, type TypeormTransaction } from './transactions/from-typeorm.ts';
export type { TransactionQuery } from './transactions/transaction-query.ts';
