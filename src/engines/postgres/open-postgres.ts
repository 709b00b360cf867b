// One PostgreSQL database as all roles of a process, over one pool.

import type { ClientBase, Pool } from 'pg';
import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { SnapshotStore } from '../../aggregates/snapshot-store.ts';
import { sqlAggregateStorage } from '../../aggregates/sql-aggregate-storage.ts';
import type { BreakerStore } from '../../delivery/breaker-store.ts';
import type { EndpointHealthStore } from '../../delivery/endpoint-health.ts';
import { createWaiters } from '../../foundation/async/waiters.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyRoles } from '../../foundation/lazy-roles.ts';
import type { OutboxLedgerOptions } from '../../outbox/create-outbox-ledger.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { InlineRoles } from '../../projections/inline-appends.ts';
import type { ReadModelRoles } from '../../projections/read-model-store.ts';
import { sqlVersions } from '../../projections/sql/versions.ts';
import type { SagaIndex } from '../../reactors/saga-index.ts';
import { sqlSagaIndex } from '../../reactors/sql-saga-index.ts';
import type { SubscriptionRoles } from '../../subscriptions/subscription-storage.ts';
import { sqlTraceIndex } from '../../traces/sql-trace-index.ts';
import type { TraceIndex } from '../../traces/trace-index.ts';
import { connectPostgres, type ConnectOptions } from './connection/connection.ts';
import { postgresDatabase } from './connection/database.ts';
import { postgresBreakerStore } from './delivery/breaker-store.ts';
import { postgresEndpointHealth } from './delivery/endpoint-health.ts';
import { postgresOutboxLedger, type PostgresTransaction } from './outbox/ledger.ts';
import { migratePostgresOutbox } from './outbox/schema.ts';
import { postgresReadModels } from './read-models/read-models.ts';
import { postgresEventStore, type PostgresStoreOptions } from './store/event-store.ts';
import { migratePostgres } from './store/schema.ts';
import { postgresSubscriptionStorage } from './subscriptions/storage.ts';

export interface PostgresOptions extends PostgresStoreOptions, ConnectOptions, OutboxLedgerOptions {
  /** The PostgreSQL schema of the store and of all other roles except the outbox. Default: `millrace`. */
  readonly schema?: string | undefined;
  /** The PostgreSQL schema of the outbox. Default: `core_outbox`. */
  readonly outboxSchema?: string | undefined;
  /** The schemas that opening migrates: `store` is `schema`, `outbox` is `outboxSchema`. Default: both. */
  readonly roles?: readonly ('store' | 'outbox')[] | undefined;
}

interface PostgresRoles
  extends InlineRoles, ReadModelRoles, Omit<SubscriptionRoles<ClientBase>, 'leases'> {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
  readonly sagas: SagaIndex;
  readonly traces: TraceIndex;
  readonly outbox: OutboxLedger<PostgresTransaction>;
  /** In the table `millrace_breakers`, which its first use creates. */
  readonly breakers: BreakerStore;
  /** In the table `millrace_endpoint_health`, which its first use creates. */
  readonly endpointHealth: EndpointHealthStore;
}

export interface PostgresEngine extends PostgresRoles, AsyncDisposable {
  /** Identifies the database: `postgres://host:port/database`. */
  readonly database: string;
}

/**
 * Opens a PostgreSQL database by URL or with your `pg` pool, which stays open when the handle is closed.
 *
 * @example
 * import { openPostgres } from 'millrace/engines/postgres';
 *
 * await using db = await openPostgres('postgres://localhost/shop');
 * console.log(await db.store.head(), await db.outbox.counts());
 */
export async function openPostgres(
  target: string | Pool,
  options: PostgresOptions = {},
): Promise<PostgresEngine> {
  const {
    schema = 'millrace',
    outboxSchema = 'core_outbox',
    roles = ['store', 'outbox'],
  } = options;
  const connection = await connectPostgres(target, options, async (client) => {
    if (roles.includes('store')) await migratePostgres(client, schema);
    if (roles.includes('outbox')) await migratePostgresOutbox(client, outboxSchema);
  });
  const { pool } = connection;
  const database = postgresDatabase(connection, schema);
  const liveReaders = createWaiters();
  const commands = sqlAggregateStorage(database);
  const models = postgresReadModels(database, () => liveReaders.wakeAll());
  const handle = lazyRoles<PostgresRoles>(
    {
      store: () => postgresEventStore(connection, { schema, liveReaders }, options),
      subscriptions: () => postgresSubscriptionStorage(connection, database),
      snapshots: () => commands.snapshots,
      keyClaims: () => commands.keyClaims,
      readModels: () => models.readModels,
      readModelVersions: () => sqlVersions(database),
      inlineAppends: () => models.inlineAppends,
      sagas: () => sqlSagaIndex(database),
      traces: () => sqlTraceIndex(database),
      outbox: () => postgresOutboxLedger(connection, outboxSchema, options),
      breakers: () => postgresBreakerStore(pool),
      endpointHealth: () => postgresEndpointHealth(pool),
    },
    {
      close: async () => connection[Symbol.asyncDispose](),
      closedError: () => new MillraceError('STORE_CLOSED', 'the engine is closed'),
    },
  );
  return Object.defineProperty(handle, 'database', {
    enumerable: true,
    value: connection.database,
  }) as PostgresEngine;
}
