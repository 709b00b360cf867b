// One SQLite file as all roles of a process: one writer thread, and readers on the calling thread.

import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { SnapshotStore } from '../../aggregates/snapshot-store.ts';
import { sqlAggregateStorage } from '../../aggregates/sql-aggregate-storage.ts';
import type { Bus } from '../../bus/bus.ts';
import { createBus, type BusOptions } from '../../bus/create-bus.ts';
import type { BreakerStore } from '../../delivery/breaker-store.ts';
import type { EndpointHealthStore } from '../../delivery/endpoint-health.ts';
import { MillraceError } from '../../foundation/error.ts';
import { lazyRoles, type Factories, type Lifetime } from '../../foundation/lazy-roles.ts';
import type { OutboxLedgerOptions } from '../../outbox/create-outbox-ledger.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { planInline, type InlineRoles } from '../../projections/inline-appends.ts';
import type { ReadModelRoles } from '../../projections/read-model-store.ts';
import { sqlVersions } from '../../projections/sql/versions.ts';
import type { SagaIndex } from '../../reactors/saga-index.ts';
import { sqlSagaIndex } from '../../reactors/sql-saga-index.ts';
import type { SubscriptionRoles } from '../../subscriptions/subscription-storage.ts';
import type { TaskEngine } from '../../tasks/task-engine.ts';
import type { EventStore } from '../../store/event-store.ts';
import { sqlTraceIndex } from '../../traces/sql-trace-index.ts';
import type { TraceIndex } from '../../traces/trace-index.ts';
import type { KeyStore } from '../../work/key-store.ts';
import type { WorkQueue } from '../../work/work-queue.ts';
import { sqliteBusEngine } from './bus/bus.ts';
import { openSqliteFile, type SqliteFile } from './connection/file.ts';
import { databaseOf } from './connection/path.ts';
import { sqliteBreakerStore } from './delivery/breaker-store.ts';
import { sqliteEndpointHealth } from './delivery/endpoint-health.ts';
import { sqliteKeyStore } from './keys/key-store.ts';
import { sqliteOutboxLedger, type SqliteOutboxTransaction } from './outbox/ledger.ts';
import { openWorkFile } from './queue/file.ts';
import { sqliteWorkQueue } from './queue/queue.ts';
import { sqliteReadModels } from './read-models/read-models.ts';
import { sqliteEventStore, type SqliteStoreOptions } from './store/event-store.ts';
import {
  sqliteSubscriptionStorage,
  type SqliteTransaction,
} from './subscriptions/subscriptions.ts';
import { sqliteTaskEngine } from './tasks/tasks.ts';

export interface SqliteOptions extends SqliteStoreOptions, BusOptions, OutboxLedgerOptions {
  /** How long a write waits for a write of another process. Default: 10 s. */
  readonly busyTimeoutMs?: number | undefined;
  /** The first token of the subjects of tasks. Default: `gbe`. */
  readonly root?: string | undefined;
}

export interface SqliteRoles
  extends InlineRoles, ReadModelRoles, Omit<SubscriptionRoles<SqliteTransaction>, 'leases'> {
  readonly snapshots: SnapshotStore;
  readonly keyClaims: KeyClaims;
  readonly sagas: SagaIndex;
  readonly traces: TraceIndex;
  readonly outbox: OutboxLedger<SqliteOutboxTransaction>;
  readonly bus: Bus;
  /** For `createTasks`. */
  readonly tasks: TaskEngine;
  /** Keys of workers, in a separate file next to this one, so that no worker waits for the writer of the events. */
  readonly keys: KeyStore;
  /** Work queues, in the file of the keys. */
  readonly queue: WorkQueue;
  readonly breakers: BreakerStore;
  readonly endpointHealth: EndpointHealthStore;
}

export interface SqliteEngine extends SqliteRoles, AsyncDisposable {
  /** Identifies the file. */
  readonly database: string;
}

/**
 * Opens a file, creates a missing one, and starts its writer thread. Several processes may open one file.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * console.log(await db.store.head(), await db.outbox.counts());
 */
export async function openSqlite(url: string, options: SqliteOptions = {}): Promise<SqliteEngine> {
  const file = await openSqliteFile(url, options.busyTimeoutMs);
  const workUrl = `sqlite:${file.path.replace(/(\.db)?$/, '.work.db')}`;
  const { factories, lifetime } = sqliteRoles(file, workUrl, options);
  return Object.defineProperty(lazyRoles<SqliteRoles>(factories, lifetime), 'database', {
    enumerable: true,
    value: databaseOf(file.path),
  }) as SqliteEngine;
}

/** The factories of all roles over an open file, which is closed with them; keys and queues are at `workUrl`. */
export function sqliteRoles(
  file: SqliteFile,
  workUrl: string,
  options: SqliteOptions,
): {
  readonly factories: Factories<SqliteRoles>;
  readonly lifetime: Lifetime;
} {
  const { clock, observer } = options;
  const { database } = file;
  const opened = new AsyncDisposableStack();
  opened.use(file);
  const openWork = (): ReturnType<typeof openWorkFile> => {
    const connection = openWorkFile(workUrl);
    opened.defer(() => connection.close());
    return connection;
  };
  const commands = sqlAggregateStorage(database);
  let events: EventStore | undefined;
  const store = (): EventStore => (events ??= sqliteEventStore(file, options));
  return {
    factories: {
      store,
      subscriptions: () => sqliteSubscriptionStorage(file),
      snapshots: () => commands.snapshots,
      keyClaims: () => commands.keyClaims,
      readModels: () => sqliteReadModels(file),
      readModelVersions: () => sqlVersions(database),
      inlineAppends: planInline,
      sagas: () => sqlSagaIndex(database),
      traces: () => sqlTraceIndex(database),
      outbox: () => sqliteOutboxLedger(file, options),
      bus: () =>
        createBus(sqliteBusEngine(file, { clock }), {
          ...options,
          personalData: options.personalData ?? store().personalData,
        }),
      tasks: () => sqliteTaskEngine(file, options),
      keys: () => sqliteKeyStore(workUrl, { clock }),
      queue: () => sqliteWorkQueue(workUrl, { clock, observer }),
      breakers: () => sqliteBreakerStore(openWork(), { clock }),
      endpointHealth: () => sqliteEndpointHealth(openWork()),
    },
    lifetime: {
      close: async () => opened.disposeAsync(),
      closedError: () => new MillraceError('STORE_CLOSED', 'the engine is closed'),
    },
  };
}
