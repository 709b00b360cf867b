// The event store in PostgreSQL: it uses the database of the user with an ordinary role, and readers miss no event.

import type { Waiters } from '../../../foundation/async/waiters.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { createAppendTail } from '../../../store/append-tail.ts';
import { createEventStore } from '../../../store/create-event-store.ts';
import { newSubjectKey } from '../../../store/erasure.ts';
import type { EventStore, EventStoreOptions } from '../../../store/event-store.ts';
import { softDeleted } from '../../../store/expected-revision.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../../store/scavenge.ts';
import type { SubjectKey, SubjectKeys } from '../../../store/erasure.ts';
import type { ScavengeProgress, StoreEngine } from '../../../store/store-engine.ts';
import {
  translateErrors,
  type PostgresConnection,
  type Queryable,
} from '../connection/connection.ts';
import { lockClass, quoteName } from '../connection/schema.ts';
import { createPostgresAppender } from './appender.ts';
import { createPostgresListener } from './listener.ts';
import { createPostgresNames } from './names.ts';
import { createPostgresReader } from './reader.ts';

export interface PostgresStoreOptions extends EventStoreOptions {
  /** How often live readers poll in addition to notifications. Default: 500. */
  readonly pollIntervalMs?: number | undefined;
}

/** `liveReaders` waits for events; inline appends wake it too. */
export function postgresEventStore(
  connection: PostgresConnection,
  { schema, liveReaders }: { readonly schema: string; readonly liveReaders: Waiters },
  options: PostgresStoreOptions = {},
): EventStore {
  const { pollIntervalMs = 500, clock = systemClock, observer = silentObserver } = options;
  const channel = `millrace_${lockClass(schema)}`;
  const names = createPostgresNames(connection, schema);
  const reader = createPostgresReader(connection, names, schema);
  const tail = createAppendTail();
  const listener = createPostgresListener(connection, {
    schema,
    channel,
    waiters: liveReaders,
    pollIntervalMs,
    safeHead: () => reader.safeHead(),
    lastKnown: () => tail.last,
    onFailure: (err) => observer.log?.warn({ schema, err }, 'listening connection lost'),
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
  const reading = async <T>(read: () => Promise<T>): Promise<T> => {
    const running = translateErrors(read);
    reads.add(running);
    try {
      return await running;
    } finally {
      reads.delete(running);
    }
  };

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: true,
      durable: true,
      crossProcess: true,
    },
    write: (writes, writeOptions) => appender.write(writes, writeOptions),
    readStream: (query) => reading(() => reader.readStream(query)),
    streamStates: (streams) => reading(() => reader.streamStates(streams)),
    readAll: (query) =>
      reading(async () => {
        // A reader that has caught up has read everything before the tail, and the tail has no gaps.
        const recent = query.direction === 'forwards' ? tail.read(query) : undefined;
        return recent ?? reader.readAll(query);
      }),
    findEvent: (stream, eventId) => reading(() => reader.findEvent(stream, eventId)),
    head: () => reading(async () => (await reader.safeHead()).head),
    whenMore: (after, signal) => listener.whenMore(after, signal),
    async scavenge(scavengeOptions) {
      const progress = await scavenge(connection, schema, scavengeOptions);
      tail.forget();
      return progress;
    },
    subjectKeys: subjectKeys(connection, schema),
    async [Symbol.asyncDispose]() {
      await appender.drain();
      await listener[Symbol.asyncDispose]();
      // The pool drops requests that still wait for a connection when it ends.
      while (reads.size > 0) await Promise.allSettled(reads);
    },
  };
  return createEventStore(engine, options);
}

/** Deletes the events that retention hides, in steps of one commit each. */
async function scavenge(
  connection: PostgresConnection,
  schema: string,
  options: ScavengeOptions,
): Promise<ScavengeProgress> {
  const at = quoteName(schema);
  const streamsSql = {
    name: `${schema} scavenge streams`,
    text: `select id from ${at}.streams where truncate_before > 0 or max_count is not null
           or max_age_s is not null or tombstoned order by id`,
  };
  // The last event of a stream stays: it holds the stream's revision and age.
  const stepSql = {
    name: `${schema} scavenge step`,
    text: `with deleted as (
             delete from ${at}.events where sequence in (
               select e.sequence from ${at}.events e join ${at}.streams s on s.id = e.stream_id
               where s.id = $1 and e.revision < s.revision and (
                 s.tombstoned or s.truncate_before = $2 or e.revision < s.truncate_before
                 or e.revision <= s.revision - s.max_count
                 or e.recorded_at_ms <= $3 - s.max_age_s * 1000)
               limit $4) returning 1)
           select count(*) from deleted`,
  };
  const streams = await translateErrors(() => connection.query(streamsSql, []));
  return scavengeStreams(streams, options, async ([id]) => {
    const values = [id, softDeleted, options.nowMs, scavengeStepMax];
    const [[count] = []] = await translateErrors(() => connection.query(stepSql, values));
    return Number(count);
  });
}

/** The encryption keys of data subjects, next to the events that they decrypt. */
function subjectKeys(connection: PostgresConnection, schema: string): SubjectKeys {
  const at = quoteName(schema);
  const insert = {
    name: `${schema} keys insert`,
    text: `insert into ${at}.subject_keys (subject, key)
           select * from unnest($1::text[], $2::bytea[]) order by 1 on conflict do nothing`,
  };
  const select = {
    name: `${schema} keys select`,
    text: `select subject, key, forgotten_at_ms from ${at}.subject_keys where subject = any($1)`,
  };
  const forget = {
    name: `${schema} keys forget`,
    text: `with existing as (select 1 from ${at}.subject_keys where subject = $1 and key is not null)
           insert into ${at}.subject_keys as k (subject, key, forgotten_at_ms) values ($1, null, $2)
           on conflict (subject) do update set key = null, forgotten_at_ms = excluded.forgotten_at_ms
             where k.key is not null
           returning exists (select 1 from existing)`,
  };

  return {
    get: (subjects, { create, transaction }) =>
      translateErrors(async () => {
        const caller = transaction as Queryable | undefined;
        if (create) {
          const keys = subjects.map(newSubjectKey);
          await connection.queryOutside(caller, insert, [subjects, keys]);
        }
        const rows = await connection.queryOutside(caller, select, [subjects]);
        return new Map(
          rows.map(([subject, key, forgottenAtMs]) => [String(subject), toKey(key, forgottenAtMs)]),
        );
      }),
    forget: (subject, nowMs) =>
      translateErrors(async () => {
        const [[hadKey] = []] = await connection.query(forget, [subject, nowMs]);
        return hadKey === true;
      }),
  };
}

function toKey(key: unknown, forgottenAtMs: unknown): SubjectKey {
  return key instanceof Uint8Array
    ? { kind: 'key', key }
    : { kind: 'forgotten', forgottenAtMs: Number(forgottenAtMs) };
}
