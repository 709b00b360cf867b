export { openPostgres, type PostgresEngine, type PostgresOptions } from './open-postgres.ts';
export type { PostgresMigration } from './connection/schema.ts';
export { migratePostgres, postgresMigrations } from './store/schema.ts';
export { migratePostgresOutbox, postgresOutboxMigrations } from './outbox/schema.ts';
export { postgresInbox, type InboxClient, type PostgresInbox } from './delivery/inbox.ts';
export type { PostgresTransaction } from './outbox/ledger.ts';
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
