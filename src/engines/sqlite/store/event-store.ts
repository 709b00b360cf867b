// The embedded event store: one file, no server; every acknowledged append is on disk.

import { systemClock } from '../../../foundation/clock.ts';
import { createEventStore } from '../../../store/create-event-store.ts';
import { newSubjectKey } from '../../../store/erasure.ts';
import type { EventStore, EventStoreOptions } from '../../../store/event-store.ts';
import { softDeleted } from '../../../store/expected-revision.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../../store/scavenge.ts';
import type { SubjectKey } from '../../../store/erasure.ts';
import type { ScavengeProgress, StoreEngine } from '../../../store/store-engine.ts';
import { InlineMoved, InlineTransaction } from '../../../projections/inline-appends.ts';
import type { SqliteFile } from '../connection/file.ts';
import type { SqliteWriter } from '../thread/writer.ts';
import { createSubjectKeyReader } from './subject-keys.ts';
import { inlineWrites } from '../read-models/read-models.ts';
import { createAppendTail } from '../../../store/append-tail.ts';
import { isReplyNear } from '../connection/watch.ts';
import { createWaiters } from '../../../foundation/async/waiters.ts';

export interface SqliteStoreOptions extends EventStoreOptions {
  /** How often a live reader polls for appends of other processes without a file event. Default: 250. */
  readonly pollIntervalMs?: number | undefined;
}

export function sqliteEventStore(file: SqliteFile, options: SqliteStoreOptions = {}): EventStore {
  const { pollIntervalMs = 250, clock = systemClock } = options;
  const waiters = createWaiters();
  const tail = createAppendTail();
  let headAtWakeUp = 0;
  let repliedAtMs = 0;
  file.onAppended((rows) => {
    repliedAtMs = clock.now();
    tail.add(rows);
    headAtWakeUp = Math.max(headAtWakeUp, tail.last);
    waiters.wakeAll();
  });
  const { writer, reader, reading } = file;
  const keys = createSubjectKeyReader(file.connectKeys);
  const head = createHead();
  const isOwnReplyNear = (): boolean => isReplyNear(writer.appending, clock.now() - repliedAtMs);
  const watch = file.watch({ pollIntervalMs, hasMore, onMore: () => waiters.wakeAll() });

  /** True once per head: then all readers are woken. */
  function hasMore(): boolean {
    if (isOwnReplyNear()) return false;
    const before = headAtWakeUp;
    headAtWakeUp = Math.max(before, head());
    return headAtWakeUp > before;
  }

  /** Reads the head at most once per commit. */
  function createHead(): () => number {
    let version = Number.NaN;
    let read = 0;
    return () => {
      const now = reader.dataVersion();
      // Read the version before the head: a commit in between costs only one more read.
      if (now !== version) read = reader.head();
      version = now;
      return read;
    };
  }

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: file.isDurable,
      crossProcess: file.isDurable,
      followingAppend: true,
    },
    async write(writes, { transaction }) {
      const inline =
        transaction instanceof InlineTransaction ? inlineWrites(transaction.plan) : undefined;
      const outcomes = await writer.append(writes, clock.now(), inline);
      if (outcomes === 'moved') throw new InlineMoved();
      return outcomes;
    },
    readStream: (query) => reading(() => reader.readStream(query)),
    streamStates: (streams) => reading(() => reader.streamStates(streams)),
    readAll: (query) => reading(() => tail.read(query) ?? reader.readAll(query)),
    findEvent: (stream, eventId) => reading(() => reader.findEvent(stream, eventId)),
    head: () => reading(head),
    async whenMore(after, signal) {
      try {
        const isReady = (): boolean => tail.last > after || (!isOwnReplyNear() && head() > after);
        const woken = reading(() => waiters.wait(signal, isReady));
        if (waiters.size > 0) watch.setWaiting(true);
        await woken;
      } finally {
        if (waiters.size === 0) watch.setWaiting(false);
      }
    },
    async scavenge(scavengeOptions) {
      const progress = await scavengeSqlite(writer, scavengeOptions);
      tail.forget();
      return progress;
    },
    subjectKeys: {
      async get(subjects, { create }) {
        // The thread creates no key itself: it would have to load the encryption.
        const rows = create
          ? await writer.call({
              operation: 'keys.create',
              keys: subjects.map((subject) => ({ subject, key: newSubjectKey() })),
            })
          : await reading(() => keys.rows(subjects));
        return new Map(rows.map((row) => [String(row['subject']), toKey(row)]));
      },
      forget: (subject, nowMs) => writer.call({ operation: 'keys.forget', subject, nowMs }),
    },
    async [Symbol.asyncDispose]() {
      watch.close();
      waiters.wakeAll();
      keys.close();
    },
  };
  return createEventStore(engine, options);
}

/** Deletes the events that retention hides, one step per commit. */
async function scavengeSqlite(
  writer: SqliteWriter,
  options: ScavengeOptions,
): Promise<ScavengeProgress> {
  const [streams = []] = await writer.run([
    {
      sql: `select id from streams where truncate_before > 0 or max_count is not null
            or max_age_s is not null or tombstoned = 1 order by id`,
      values: [],
    },
  ]);
  return scavengeStreams(streams, options, async ({ id }) => {
    // The last event of a stream stays: it holds the stream's revision and age.
    const hidden = `from events e join streams s on s.id = e.stream_id
      where s.id = ?1 and e.revision < s.revision and (
        s.tombstoned = 1 or s.truncate_before = ?2 or e.revision < s.truncate_before
        or e.revision <= s.revision - s.max_count
        or e.recorded_at_ms <= ?3 - s.max_age_s * 1000)
      order by e.revision limit ?4`;
    const values = [id ?? 0, softDeleted, options.nowMs, scavengeStepMax];
    const [, removed = []] = await writer.run([
      {
        sql: `delete from event_ids where (stream_id, event_id, revision) in (
                select e.stream_id, e.event_id, e.revision ${hidden})`,
        values,
        isHousekeeping: true,
      },
      {
        sql: `delete from events where sequence in (select e.sequence ${hidden}) returning 1`,
        values,
        isHousekeeping: true,
      },
    ]);
    return removed.length;
  });
}

function toKey(row: Readonly<Record<string, unknown>>): SubjectKey {
  const key = row['key'];
  return key instanceof Uint8Array
    ? { kind: 'key', key }
    : { kind: 'forgotten', forgottenAtMs: Number(row['forgotten_at_ms']) };
}
