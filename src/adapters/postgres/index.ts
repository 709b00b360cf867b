export {
  postgresBreakerStore,
  type PostgresBreakerStoreOptions,
} from './postgres-breaker-store.ts';
export { postgresEventStore, type PostgresOptions } from './postgres-event-store.ts';
export { migratePostgres, postgresMigrations, type PostgresMigration } from './postgres-schema.ts';
export { postgresInbox, type InboxClient, type PostgresInbox } from './postgres-inbox.ts';
export {
  postgresEndpointHealth,
  type PostgresEndpointHealthOptions,
} from './postgres-endpoint-health.ts';
export {
  postgresOutboxLedger,
  type PostgresOutboxOptions,
  type PostgresTransaction,
} from './postgres-outbox-ledger.ts';
export { migratePostgresOutbox, postgresOutboxMigrations } from './postgres-outbox-schema.ts';
export { fromDrizzle, type DrizzleSql, type DrizzleTransaction } from './from-drizzle.ts';
export { fromKnex, type KnexTransaction } from './from-knex.ts';
export { fromKysely, type KyselyQuery, type KyselyTransaction } from './from-kysely.ts';
export { fromPrisma, type PrismaTransaction } from './from-prisma.ts';
export { fromTypeorm, type TypeormTransaction } from './from-typeorm.ts';
export type { TransactionQuery } from './transaction-query.ts';
