// The event store in PostgreSQL: the user's database, an ordinary role, gap-free for every reader.

import type { ClientBase, Pool } from 'pg';
import type { AggregateStorage } from '../../aggregates/aggregate-storage.ts';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { silentObserver } from '../../foundation/observer.ts';
import type { SagaHost } from '../../reactors/saga-index.ts';
import { sqlSagaIndex } from '../../reactors/sql-saga-index.ts';
import { sqlTraceIndex } from '../../traces/sql-trace-index.ts';
import type { TraceHost } from '../../traces/trace-index.ts';
import { createAppendTail } from '../../store/append-tail.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { AllPage, AllQuery, StoreEngine } from '../../store/store-engine.ts';
import type { SubscriptionHost } from '../../subscriptions/subscription-storage.ts';
import type { InlineHost } from '../../projections/inline-appends.ts';
import type { ReadModelHost } from '../../projections/read-model-store.ts';
import { sqlVersions } from '../../projections/sql-versions.ts';
import { postgresAggregateStorage } from './postgres-aggregates.ts';
import { createPostgresAppender } from './postgres-appender.ts';
import { askPostgres, checkOut, connectPostgres, unavailable } from './postgres-connection.ts';
import { postgresDatabase } from './postgres-database.ts';
import { createPostgresKeys } from './postgres-keys.ts';
import { createPostgresListener } from './postgres-listener.ts';
import { createPostgresNames } from './postgres-names.ts';
import { createPostgresReader } from './postgres-reader.ts';
import { postgresReadModels } from './postgres-read-models.ts';
import { lockClass, migratePostgres } from './postgres-schema.ts';
import { scavengePostgres } from './postgres-scavenge.ts';
import { postgresSubscriptionStorage } from './postgres-subscriptions.ts';

export interface PostgresOptions extends EventStoreOptions {
  /** Default: `millrace`. */
  readonly schema?: string;
  /** `auto` (default) brings the schema up to date when the store is opened; `off` leaves that to `millrace migrate`. */
  readonly migrate?: 'auto' | 'off';
  /** Named prepared statements; off behind a pooler that hands out connections per transaction. Default: on. */
  readonly prepare?: boolean;
  /** Of our own pool, when a URL is given. Default: 10. */
  readonly connectionsMax?: number;
  /** The backstop of notifications for live readers. Default: 500. */
  readonly pollIntervalMs?: number;
}

/**
 * Opens the event store in a PostgreSQL database, by URL or with a `pg` pool of yours.
 *
 * @example
 * import { postgresEventStore } from 'millrace/adapters/postgres';
 *
 * await using store = await postgresEventStore('postgres://localhost/shop');
 * console.log(await store.head());
 */
export async function postgresEventStore(
  target: string | Pool,
  options: PostgresOptions = {},
): Promise<
  EventStore &
    AggregateStorage &
    SubscriptionHost<ClientBase> &
    ReadModelHost &
    InlineHost &
    SagaHost &
    TraceHost
> {
  const {
    schema = 'millrace',
    migrate = 'auto',
    prepare = true,
    connectionsMax = 10,
    pollIntervalMs = 500,
    clock = systemClock,
    observer = silentObserver,
  } = options;
  const connection = await connectPostgres(target, { prepare, connectionsMax });
  const channel = `millrace_${lockClass(schema)}`;
  try {
    if (migrate === 'auto') await migrateNow(connection.pool, schema);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw unavailable(error);
  }
  const names = createPostgresNames(connection, schema);
  const reader = createPostgresReader(connection, names, schema);
  const tail = createAppendTail();
  const listener = createPostgresListener(connection, {
    schema,
    channel,
    pollIntervalMs,
    safeHead: () => reader.safeHead(),
    lastKnown: () => tail.last,
    onFailure: (err) => observer.log?.warn({ schema, err }, 'live reading lost its connection'),
  });
  const appender = createPostgresAppender(connection, names, {
    schema,
    channel,
    now: () => clock.now(),
    sleep: (ms) => clock.sleep(ms),
    onCommit: (rows, isAll) => {
      tail.add(rows);
      listener.wakeAll(isAll);
    },
    onFailure: () => tail.forget(),
  });

  const reads = new Set<Promise<unknown>>();
  const reading = async <T>(
    signal: AbortSignal | undefined,
    read: () => Promise<T>,
  ): Promise<T> => {
    if (signal?.aborted === true) throw aborted(signal);
    const running = askPostgres(read);
    reads.add(running);
    try {
      return await running;
    } finally {
      reads.delete(running);
    }
  };

  /** Whoever is at the end has all that is below; where no number is missing, nothing can still appear. */
  const fromTail = (query: AllQuery): AllPage | undefined =>
    query.direction === 'forwards' ? tail.read(query) : undefined;

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: true,
      durable: true,
      crossProcess: true,
    },
    write: (writes, writeOptions) => appender.write(writes, writeOptions),
    readStream: (query) => reading(query.signal, () => reader.readStream(query)),
    readAll: (query) => reading(query.signal, async () => fromTail(query) ?? reader.readAll(query)),
    findEvent: (stream, eventId) => reading(undefined, () => reader.findEvent(stream, eventId)),
    head: () => reading(undefined, async () => (await reader.safeHead()).head),
    whenMore: (after, signal) => listener.whenMore(after, signal),
    async scavenge(scavengeOptions) {
      const progress = await scavengePostgres(connection, schema, scavengeOptions);
      tail.forget();
      return progress;
    },
    subjectKeys: createPostgresKeys(connection, schema),
    async [Symbol.asyncDispose]() {
      await appender.drain();
      await listener[Symbol.asyncDispose]();
      // The pool forgets whoever still waits for a connection when it ends.
      while (reads.size > 0) await Promise.allSettled(reads);
      await connection[Symbol.asyncDispose]();
    },
  };
  const database = postgresDatabase(connection, schema);
  return Object.assign(
    createEventStore(engine, options),
    postgresAggregateStorage(connection, schema),
    {
      subscriptions: postgresSubscriptionStorage(connection, database),
      ...postgresReadModels(database, () => listener.wakeAll()),
      readModelVersions: sqlVersions(database),
      sagas: sqlSagaIndex(database),
      traces: sqlTraceIndex(database),
    },
  );
}

async function migrateNow(pool: Pool, schema: string): Promise<void> {
  const client = await checkOut(pool);
  try {
    await migratePostgres(client, schema);
  } finally {
    client.release();
  }
}
