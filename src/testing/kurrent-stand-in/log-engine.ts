// The store of one node over its log, with EventStoreDB's rules for appends and deletions.

import { createHash } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { decideAppend, softDeleted, type AppendDecision } from '../../store/expected-revision.ts';
import { decideRetention } from '../../store/retention.ts';
import type {
  RetentionChange,
  RowToWrite,
  StoreEngine,
  StreamWrite,
  WriteOutcome,
} from '../../store/store-engine.ts';
import { metadataStream } from '../../store/stream-metadata.ts';
import type { Fidelity } from './fidelity.ts';
import type { LogRecord, RecordLog } from './record-log.ts';
import { linksTo, restoredMetadata } from './system-records.ts';

export interface LogWriter {
  write(write: StreamWrite): Promise<WriteOutcome>;
  /** As after a start of the server. */
  restart(): void;
  /** Appends are written, but not indexed and not answered, until the returned function is called. */
  holdIndex(): () => void;
}

export interface LogWriterParts {
  readonly log: RecordLog;
  /** Adds records to the log and replicates them. */
  readonly commit: (records: readonly LogRecord[]) => void;
  readonly fidelity: Fidelity;
  readonly clock: Clock;
}

export function createLogWriter({ log, commit, fidelity, clock }: LogWriterParts): LogWriter {
  /** The revision of an event id in its stream, for appends without an exact revision. */
  const remembered = new Map<string, number>();
  /** Ids that are written and not indexed. */
  const inFlight = new Set<string>();
  let indexing: Promise<void> | undefined;
  let stopping = Promise.withResolvers<never>();
  let linked = 0;
  stopping.promise.catch(() => undefined);

  const keyOf = (stream: string, eventId: string): string => `${eventId} ${stream}`;

  const isEqualInFlight = ({ stream, rows }: StreamWrite): boolean =>
    fidelity.dropsEqualAppends && rows.every((row) => inFlight.has(keyOf(stream, row.eventId)));

  function decide({ stream, expected, rows }: StreamWrite): AppendDecision {
    const found = log.streamNamed(stream);
    const ids = rows.map((row) => row.eventId);
    return decideAppend(found?.state, expected, ids, {
      idsFrom: (revision, count) =>
        (found?.sequences ?? [])
          .slice(revision, revision + count)
          .map((sequence) => log.rowAt(sequence)?.eventId ?? ''),
      revisionOf: (id) =>
        fidelity.forgetsIds ? remembered.get(keyOf(stream, id)) : found?.revisionOf.get(id),
    });
  }

  const isReordered = ({ stream, expected, rows }: StreamWrite, last: number): boolean => {
    if (!fidelity.dropsReorderedAppends || typeof expected === 'number') return false;
    const stored = log.streamNamed(stream)?.revisionOf;
    return rows.some((row, index) => stored?.get(row.eventId) !== last - rows.length + 1 + index);
  };

  /** The records after a deletion or a change of metadata, or its rejection. */
  function retentionOf(
    change: RetentionChange,
    rows: readonly RowToWrite[],
  ): WriteOutcome | readonly LogRecord[] {
    const { of, values, expected } = change;
    const state = log.streamNamed(of)?.state;
    const isEmpty = (state?.revision ?? -1) === -1;
    if (fidelity.refusesAbsentDelete && expected !== undefined && isEmpty && !state?.tombstoned) {
      return { kind: 'conflict', actual: -1 };
    }
    const decision = decideRetention(state, change);
    if (decision.kind !== 'retain') return decision;
    const isSoft = state?.truncateBefore === softDeleted;
    const isRestored =
      isSoft && (fidelity.revivesByDelete || values.truncateBefore !== softDeleted);
    const truncateBefore = (state?.revision ?? -1) + 1;
    const payload = expected === undefined ? rows.at(-1)?.payload : undefined;
    return isRestored ? [restoredMetadata(of, { payload, truncateBefore }, clock.now())] : [];
  }

  function recordsOf(write: StreamWrite): readonly LogRecord[] {
    const { stream, rows, retention, tombstone } = write;
    const recordedAtMs = clock.now();
    return rows.map((row, index) => {
      const isLast = index === rows.length - 1;
      if (!isLast || retention === undefined) return { stream, row, recordedAtMs, tombstone };
      const isPlainDelete = fidelity.writesDeletedMetadata && retention.expected !== undefined;
      const { of, values } = retention;
      return {
        stream,
        row: isPlainDelete ? withPayload(row, { $tb: softDeleted }) : row,
        recordedAtMs,
        retention: { of, values: isPlainDelete ? { truncateBefore: softDeleted } : values },
      };
    });
  }

  /** The server writes `$tb` after the first append to a deleted stream. */
  function revival({ stream, rows }: StreamWrite, firstRevision: number): readonly LogRecord[] {
    const isDeleted = log.streamNamed(stream)?.state.truncateBefore === softDeleted;
    if (!isDeleted || !fidelity.writesDeletedMetadata || rows.length === 0) return [];
    const metadata = log.streamNamed(metadataStream(stream));
    const payload = log.rowAt(metadata?.sequences.at(-1))?.payload;
    return [restoredMetadata(stream, { payload, truncateBefore: firstRevision }, clock.now())];
  }

  function project(first: number): void {
    if (!fidelity.systemProjections) return;
    const rows = Array.from({ length: log.head - first + 1 }, (_, index) =>
      log.rowAt(first + index),
    ).filter((row) => row !== undefined);
    commit(linksTo(rows, linked));
    linked += rows.length;
  }

  async function indexed(keys: readonly string[]): Promise<void> {
    if (!fidelity.dropsEqualAppends && indexing === undefined) return;
    for (const key of keys) inFlight.add(key);
    await (indexing ?? new Promise((resolve) => setImmediate(resolve)));
    for (const key of keys) inFlight.delete(key);
  }

  return {
    async write(write) {
      const { stream, retention } = write;
      if (isEqualInFlight(write)) return stopping.promise;
      const decision = decide(write);
      if (decision.kind === 'conflict' || decision.kind === 'deleted') return decision;
      const restored = retention === undefined ? [] : retentionOf(retention, write.rows);
      if (!isRecords(restored)) return restored;
      if (decision.kind === 'duplicate') {
        const { revision } = decision;
        if (isReordered(write, revision)) return stopping.promise;
        const found = log.streamNamed(stream);
        const isHidden = found?.state.truncateBefore === softDeleted && fidelity.hidesLatePositions;
        return {
          kind: 'duplicate',
          revision,
          sequence: isHidden ? 0 : (found?.sequences[revision] ?? 0),
        };
      }
      const first = log.head + 1;
      const records = recordsOf(write);
      commit([...records, ...restored, ...revival(write, decision.firstRevision)]);
      const keys = write.rows.map((row) => keyOf(stream, row.eventId));
      for (const [index, key] of keys.entries())
        remembered.set(key, decision.firstRevision + index);
      project(first);
      await indexed(keys);
      const revision = decision.firstRevision + records.length - 1;
      return { kind: 'appended', revision, sequence: first + records.length - 1 };
    },
    restart() {
      remembered.clear();
      stopping.reject(new MillraceError('STORE_UNAVAILABLE', 'the server was stopped'));
      stopping = Promise.withResolvers();
      stopping.promise.catch(() => undefined);
    },
    holdIndex() {
      const held = Promise.withResolvers<void>();
      indexing = held.promise;
      return () => {
        indexing = undefined;
        held.resolve();
      };
    },
  };
}

/** Reads from the log of this node and writes to that of the leader. */
export function createLogEngine(
  log: RecordLog,
  write: (write: StreamWrite) => Promise<WriteOutcome>,
): StoreEngine {
  return {
    capabilities: {
      multiStreamAppend: false,
      callerTransaction: false,
      durable: true,
      crossProcess: true,
      scavenge: false,
    },
    async write(writes) {
      const [only] = writes;
      return only === undefined ? [] : [await write(only)];
    },
    readStream: async (query) => log.readStream(query),
    readAll: async (query) => log.readAll(query),
    findEvent: async (stream, eventId) => log.findEvent(stream, eventId),
    head: async () => log.head,
    whenMore: (after, signal) => log.waiters.wait(signal, () => log.head > after),
    scavenge: () => Promise.reject(new MillraceError('NOT_SUPPORTED', 'use scavenge of StandIn')),
    // The store seals personal data as on our server, but forgets nothing: the adapter stores its keys elsewhere.
    subjectKeys: {
      get: async (subjects) =>
        new Map(subjects.map((subject) => [subject, { kind: 'key', key: keyFor(subject) }])),
      forget: async () => true,
    },
    async [Symbol.asyncDispose]() {
      log.waiters.wakeAll();
    },
  };
}

function keyFor(subject: string): Uint8Array {
  return createHash('sha256').update(subject).digest();
}

function isRecords(value: WriteOutcome | readonly LogRecord[]): value is readonly LogRecord[] {
  return Array.isArray(value);
}

function withPayload(row: RowToWrite, payload: object): RowToWrite {
  return { ...row, payload: JSON.stringify(payload) };
}
