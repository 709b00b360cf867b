// The embedded event store: one file, no server, every acknowledged append on disk.

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { AggregateStorage } from '../../aggregates/aggregate-storage.ts';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { SagaHost } from '../../reactors/saga-index.ts';
import { sqlSagaIndex } from '../../reactors/sql-saga-index.ts';
import { sqlTraceIndex } from '../../traces/sql-trace-index.ts';
import type { TraceHost } from '../../traces/trace-index.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import { newSubjectKey } from '../../store/erasure.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { SubscriptionHost } from '../../subscriptions/subscription-storage.ts';
import type { StoreEngine, SubjectKey } from '../../store/store-engine.ts';
import {
  InlineMoved,
  InlineTransaction,
  planInline,
  type InlineHost,
} from '../../projections/inline-appends.ts';
import type { ReadModelHost } from '../../projections/read-model-store.ts';
import { sqlVersions } from '../../projections/sql-versions.ts';
import { sqliteAggregateStorage } from './sqlite-aggregates.ts';
import { sqliteDatabase } from './sqlite-database.ts';
import { describeFailure, sqliteError } from './sqlite-error.ts';
import { pathOf } from './sqlite-path.ts';
import { openSqliteReader, type SqliteReader } from './sqlite-reader.ts';
import { inlineWrites, sqliteReadModels } from './sqlite-read-models.ts';
import { scavengeSqlite } from './sqlite-scavenge.ts';
import { sqliteSubscriptionStorage, type SqliteTransaction } from './sqlite-subscriptions.ts';
import { watchSqlite } from './sqlite-watch.ts';
import { startSqliteWriter } from './sqlite-writer.ts';
import { createWaiters } from '../../store/waiters.ts';

export interface SqliteOptions extends EventStoreOptions {
  /** How long a write waits for another process's write. Default: 10 s. */
  readonly busyTimeoutMs?: number;
  /** How often a live reader looks for other processes' appends when no file event came. Default: 250. */
  readonly pollIntervalMs?: number;
}

/**
 * Opens (and, where it is new, creates) the event store in a file. Several processes may open one
 * file.
 *
 * @example
 * import { sqliteEventStore } from 'millrace/adapters/sqlite';
 *
 * await using store = await sqliteEventStore('sqlite:.millrace/events.db');
 * console.log(await store.head());
 */
export async function sqliteEventStore(
  url: string,
  options: SqliteOptions = {},
): Promise<
  EventStore &
    AggregateStorage &
    SubscriptionHost<SqliteTransaction> &
    ReadModelHost &
    InlineHost &
    SagaHost &
    TraceHost
> {
  const { busyTimeoutMs = 10_000, pollIntervalMs = 250, clock = systemClock } = options;
  const path = pathOf(url);
  mkdirSync(dirname(path), { recursive: true });
  const waiters = createWaiters();
  const writer = await startSqliteWriter({ path, busyTimeoutMs }, () => waiters.wakeAll());
  const database = sqliteDatabase(writer);
  const reader = await openReader();
  let isClosed = false;
  const others = watchSqlite({
    path,
    pollIntervalMs,
    dataVersion: () => reader.dataVersion(),
    onChange: () => waiters.wakeAll(),
  });

  async function openReader(): Promise<SqliteReader> {
    try {
      return openSqliteReader(path, busyTimeoutMs);
    } catch (error) {
      await writer[Symbol.asyncDispose]();
      throw readFailed(error);
    }
  }

  /** Only SQLite's own errors: what a filter throws is its author's. */
  function readFailed(error: unknown): unknown {
    const failure = describeFailure(error);
    return failure.sqliteCode === undefined ? error : sqliteError(failure, { path, doing: 'read' });
  }

  async function reading<T>(signal: AbortSignal | undefined, read: () => T): Promise<Awaited<T>> {
    if (signal?.aborted === true) throw aborted(signal);
    try {
      return await read();
    } catch (error) {
      throw readFailed(error);
    }
  }

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
    },
    async write(writes, { signal, transaction }) {
      const inline =
        transaction instanceof InlineTransaction ? inlineWrites(transaction.plan) : undefined;
      const outcomes = await writer.append(writes, clock.now(), {
        signal,
        ...(inline === undefined ? {} : { inline }),
      });
      if (outcomes === 'moved') throw new InlineMoved();
      return outcomes;
    },
    readStream: (query) => reading(query.signal, () => reader.readStream(query)),
    readAll: (query) => reading(query.signal, () => reader.readAll(query)),
    findEvent: (stream, eventId) => reading(undefined, () => reader.findEvent(stream, eventId)),
    head: () => reading(undefined, () => reader.head()),
    async whenMore(after, signal) {
      try {
        const woken = reading(signal, () => waiters.wait(signal, () => reader.head() > after));
        if (waiters.size > 0) others.setWaiting(true);
        await woken;
      } finally {
        if (waiters.size === 0) others.setWaiting(false);
      }
    },
    scavenge: (scavengeOptions) => scavengeSqlite(writer, scavengeOptions),
    subjectKeys: {
      async get(subjects, { create }) {
        const inserts = subjects.map((subject) => ({
          sql: 'insert or ignore into subject_keys (subject, key) values (?, ?)',
          values: [subject, newSubjectKey()],
        }));
        const select = {
          sql: `select subject, key, forgotten_at_ms from subject_keys
                where subject in (select value from json_each(?))`,
          values: [JSON.stringify(subjects)],
        };
        const results = await writer.run(create ? [...inserts, select] : [select]);
        return new Map((results.at(-1) ?? []).map((row) => [String(row['subject']), toKey(row)]));
      },
      async forget(subject, nowMs) {
        const [had] = await writer.run([
          {
            sql: 'select 1 from subject_keys where subject = ? and key is not null',
            values: [subject],
          },
          {
            sql: `insert into subject_keys (subject, key, forgotten_at_ms) values (?, null, ?)
                  on conflict (subject) do update set key = null, forgotten_at_ms = excluded.forgotten_at_ms
                  where key is not null`,
            values: [subject, nowMs],
          },
        ]);
        return (had?.length ?? 0) > 0;
      },
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      others.close();
      // The reader first: the last connection to close empties the log into the file, and only the
      // writer's may.
      reader.close();
      await writer[Symbol.asyncDispose]();
      waiters.wakeAll();
    },
  };
  return Object.assign(createEventStore(engine, options), sqliteAggregateStorage(writer), {
    subscriptions: sqliteSubscriptionStorage(writer, database),
    sagas: sqlSagaIndex(database),
    traces: sqlTraceIndex(database),
    readModelVersions: sqlVersions(database),
    inlineAppends: planInline(),
    readModels: sqliteReadModels({
      writer,
      database,
      reading: (read) =>
        reading(undefined, () => {
          if (isClosed) throw new MillraceError('STORE_CLOSED', 'the event store was closed');
          return read(reader);
        }),
    }),
  });
}

function toKey(row: Readonly<Record<string, unknown>>): SubjectKey {
  const key = row['key'];
  return key instanceof Uint8Array
    ? { kind: 'key', key }
    : { kind: 'forgotten', forgottenAtMs: Number(row['forgotten_at_ms']) };
}
