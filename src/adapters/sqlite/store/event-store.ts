// The embedded event store: one file, no server, every acknowledged append on disk.

import type { AggregateStorage } from '../../../aggregates/aggregate-storage.ts';
import { systemClock } from '../../../foundation/clock.ts';
import type { OutboxHost } from '../../../outbox/outbox-ledger.ts';
import type { SagaHost } from '../../../reactors/saga-index.ts';
import { sqlSagaIndex } from '../../../reactors/sql-saga-index.ts';
import { sqlTraceIndex } from '../../../traces/sql-trace-index.ts';
import type { TraceHost } from '../../../traces/trace-index.ts';
import { createEventStore, type EventStoreOptions } from '../../../store/create-event-store.ts';
import { newSubjectKey } from '../../../store/erasure.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { SubscriptionHost } from '../../../subscriptions/subscription-storage.ts';
import type { StoreEngine, SubjectKey } from '../../../store/store-engine.ts';
import {
  InlineMoved,
  InlineTransaction,
  planInline,
  type InlineHost,
} from '../../../projections/inline-appends.ts';
import type { ReadModelHost } from '../../../projections/read-model-store.ts';
import { sqlVersions } from '../../../projections/sql-versions.ts';
import { sqliteAggregateStorage } from './aggregates.ts';
import { openSqliteFile, type SqliteFile } from '../connection/file.ts';
import { outboxLedgerIn } from '../outbox/ledger.ts';
import { inlineWrites, sqliteReadModels } from '../read-models/read-models.ts';
import { scavengeSqlite } from './scavenge.ts';
import { sqliteSubscriptionStorage, type SqliteTransaction } from '../subscriptions/subscriptions.ts';
import { createAppendTail } from '../../../store/append-tail.ts';
import { watchSqlite } from '../connection/watch.ts';
import { createWaiters } from '../../../store/waiters.ts';

export interface SqliteOptions extends EventStoreOptions {
  /** How long a write waits for another process's write. Default: 10 s. */
  readonly busyTimeoutMs?: number;
  /** How often a live reader looks for other processes' appends when no file event came. Default: 250. */
  readonly pollIntervalMs?: number;
}

/** An append that is not answered so long after the last one waits for something. */
const answerMs = 20;

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
): Promise<SqliteEventStore> {
  return sqliteEventStoreIn(await openSqliteFile(url, options.busyTimeoutMs ?? 10_000), options);
}

type SqliteEventStore = EventStore &
  AggregateStorage &
  SubscriptionHost<SqliteTransaction> &
  ReadModelHost &
  InlineHost &
  SagaHost &
  TraceHost &
  OutboxHost;

/** The event store in a file that is open; closing the store closes the file. */
export function sqliteEventStoreIn(
  file: SqliteFile,
  options: Omit<SqliteOptions, 'busyTimeoutMs'> = {},
): SqliteEventStore {
  const { pollIntervalMs = 250, clock = systemClock } = options;
  const waiters = createWaiters();
  const tail = createAppendTail();
  /** The head at the last wake-up. */
  let told = 0;
  let answeredAtMs = 0;
  file.onAppended((rows) => {
    answeredAtMs = clock.now();
    tail.add(rows);
    told = Math.max(told, tail.last);
    waiters.wakeAll();
  });
  const { writer, database, reader, reading } = file;
  const head = createHead();
  const others = watchSqlite({
    path: file.path,
    pollIntervalMs,
    hasMore: () => !isAnswerNear() && head() > told,
    onMore: () => {
      told = head();
      waiters.wakeAll();
    },
  });

  /**
   * While appends are answered one after the other, the commit that is seen first is mostly their own, and
   * its answer wakes everybody. One that waits for another process's lock keeps nobody from looking.
   */
  function isAnswerNear(): boolean {
    return writer.appending > 0 && clock.now() - answeredAtMs < answerMs;
  }

  /** Read once for each commit, of whichever process, however many ask. */
  function createHead(): () => number {
    let version = Number.NaN;
    let read = 0;
    return () => {
      const now = reader.dataVersion();
      // In this order: what is committed between the two is only read once more.
      if (now !== version) read = reader.head();
      version = now;
      return read;
    };
  }

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
      followingAppend: true,
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
    readStream: (query) => reading(() => reader.readStream(query), query.signal),
    readAll: (query) => reading(() => tail.read(query) ?? reader.readAll(query), query.signal),
    findEvent: (stream, eventId) => reading(() => reader.findEvent(stream, eventId)),
    head: () => reading(head),
    async whenMore(after, signal) {
      try {
        const isThere = (): boolean => tail.last > after || (!isAnswerNear() && head() > after);
        const woken = reading(() => waiters.wait(signal, isThere), signal);
        if (waiters.size > 0) others.setWaiting(true);
        await woken;
      } finally {
        if (waiters.size === 0) others.setWaiting(false);
      }
    },
    async scavenge(scavengeOptions) {
      const progress = await scavengeSqlite(writer, scavengeOptions);
      tail.forget();
      return progress;
    },
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
        const rows = create
          ? (await writer.run([...inserts, select])).at(-1)
          : await reading(() => reader.select(select.sql, select.values));
        return new Map((rows ?? []).map((row) => [String(row['subject']), toKey(row)]));
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
      others.close();
      await file[Symbol.asyncDispose]();
      waiters.wakeAll();
    },
  };
  return Object.assign(createEventStore(engine, options), sqliteAggregateStorage(writer, reading), {
    subscriptions: sqliteSubscriptionStorage(database),
    sagas: sqlSagaIndex(database),
    traces: sqlTraceIndex(database),
    readModelVersions: sqlVersions(database),
    openOutbox: () => outboxLedgerIn(file, { clock }),
    inlineAppends: planInline(),
    readModels: sqliteReadModels({ writer, database, reading }),
  });
}

function toKey(row: Readonly<Record<string, unknown>>): SubjectKey {
  const key = row['key'];
  return key instanceof Uint8Array
    ? { kind: 'key', key }
    : { kind: 'forgotten', forgottenAtMs: Number(row['forgotten_at_ms']) };
}
