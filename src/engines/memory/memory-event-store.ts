// The event store in memory: the same rules as the durable engines, lost with the process.

import { systemClock } from '../../foundation/clock.ts';
import { createEventStore, type EventStoreOptions } from '../../store/create-event-store.ts';
import { newSubjectKey } from '../../store/erasure.ts';
import type { EventStore } from '../../store/event-store.ts';
import {
  decideAppend,
  isRejected,
  softDeleted,
  type StreamState,
} from '../../store/expected-revision.ts';
import {
  documentsToWrite,
  hasMoved,
  InlineMoved,
  InlineTransaction,
} from '../../projections/inline-appends.ts';
import type { ReadModelStore } from '../../projections/read-model-store.ts';
import { matchesRow } from '../../store/event-filter.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import { createPageMeter } from '../../store/page-bound.ts';
import { storeLimits } from '../../store/prepare-append.ts';
import { decideRetention, firstVisible, isVisible, visibleRange } from '../../store/retention.ts';
import { scavengeStepMax, scavengeStreams } from '../../store/scavenge.ts';
import type { SubjectKey } from '../../store/erasure.ts';
import type {
  AllPage,
  AllQuery,
  StoreEngine,
  StreamWrite,
  WriteOutcome,
} from '../../store/store-engine.ts';
import { createWaiters } from '../../foundation/async/waiters.ts';

interface MemoryStream {
  state: StreamState;
  /** The sequences of events by revision; undefined for scavenged events. */
  readonly sequences: (number | undefined)[];
  readonly revisionOf: Map<string, number>;
}

interface MemoryRow extends StoredRow {
  readonly tenant: string;
}

/** Writes the documents of inline projections into `readModels`. */
export function memoryEventStore(
  readModels: ReadModelStore,
  options: EventStoreOptions,
): EventStore {
  const { clock = systemClock } = options;
  /** All events, at index sequence − 1; undefined for scavenged events. */
  const rows: (MemoryRow | undefined)[] = [];
  const streams = new Map<string, MemoryStream>();
  const keys = new Map<string, SubjectKey>();
  const waiters = createWaiters();

  const engine: StoreEngine = {
    capabilities: {
      multiStreamAppend: true,
      callerTransaction: false,
      durable: false,
      crossProcess: false,
      followingAppend: true,
    },

    async write(writes, { transaction }) {
      const decisions = decideAll(writes);
      if (decisions.some(isRejected)) return decisions;
      const inline = transaction instanceof InlineTransaction ? transaction.plan : undefined;
      if (inline !== undefined && hasMoved(inline.revisions, decisions)) throw new InlineMoved();
      const outcomes = writes.map((each, index) => apply(each, decisions[index]));
      // Write both in one turn of the event loop: no reader sees the events without the documents.
      await Promise.all(
        documentsToWrite(inline?.documents ?? [], writes, outcomes).map((each) =>
          readModels.write(each.model, each.writes),
        ),
      );
      waiters.wakeAll();
      return outcomes;
    },

    async readStream(query) {
      const found = streams.get(query.stream);
      if (found === undefined) return { state: undefined, rows: [], end: true };
      const { state, sequences } = found;
      const range = visibleRange(query, state);
      if (range === undefined) return { state, rows: [], end: true };
      const { low, high, recordedAfterMs } = range;
      const page: StoredRow[] = [];
      const forwards = query.direction === 'forwards';
      const isLast = createPageMeter(query);
      for (let step = 0; step <= high - low; step += 1) {
        const row = rowAt(sequences[forwards ? low + step : high - step]);
        if (row === undefined || row.recordedAtMs <= recordedAfterMs) continue;
        page.push(row);
        if (isLast(row)) return { state, rows: page, end: false };
      }
      return { state, rows: page, end: true };
    },

    readAll: async (query) => readAll(query),

    async findEvent(name, eventId) {
      const stream = streams.get(name);
      const revision = stream?.revisionOf.get(eventId);
      return revision === undefined ? undefined : rowAt(stream?.sequences[revision]);
    },

    head: async () => rows.length,

    whenMore: (after, signal) => waiters.wait(signal, () => rows.length > after),

    scavenge: (scavengeOptions) =>
      scavengeStreams([...streams.values()], scavengeOptions, async (stream) =>
        scavengeStream(stream, scavengeOptions.nowMs),
      ),

    subjectKeys: {
      async get(subjects, { create }) {
        const found = new Map<string, SubjectKey>();
        for (const subject of subjects) {
          if (create && !keys.has(subject))
            keys.set(subject, { kind: 'key', key: newSubjectKey() });
          const key = keys.get(subject);
          if (key !== undefined) found.set(subject, key);
        }
        return found;
      },
      async forget(subject, forgottenAtMs) {
        const hadKey = keys.get(subject)?.kind === 'key';
        if (hadKey || !keys.has(subject)) keys.set(subject, { kind: 'forgotten', forgottenAtMs });
        return hadKey;
      },
    },

    async [Symbol.asyncDispose]() {
      waiters.wakeAll();
    },
  };

  function decideAll(writes: readonly StreamWrite[]): WriteOutcome[] {
    // If an append writes to a stream twice, the second write sees the state after the first.
    const pendingStates = new Map<string, StreamState>();
    return writes.map((each): WriteOutcome => {
      if (each.retention !== undefined) {
        const target = streams.get(each.retention.of)?.state;
        const decision = decideRetention(target, each.retention);
        if (decision.kind !== 'retain') return decision;
      }
      const stream = streams.get(each.stream);
      const state = pendingStates.get(each.stream) ?? stream?.state;
      const decision = decideAppend(
        state,
        each.expected,
        each.rows.map((row) => row.eventId),
        {
          idsFrom: (revision, count) =>
            (stream?.sequences ?? [])
              .slice(revision, revision + count)
              .map((sequence) => rowAt(sequence)?.eventId ?? ''),
          revisionOf: (id) => stream?.revisionOf.get(id),
        },
        each.follows,
      );
      if (isRejected(decision)) return decision;
      if (decision.kind === 'duplicate') {
        const sequence = stream?.sequences[decision.revision] ?? 0;
        return { kind: 'duplicate', revision: decision.revision, sequence };
      }
      const revision = decision.firstRevision + each.rows.length - 1;
      const { truncateBefore } = state ?? fresh;
      pendingStates.set(each.stream, {
        ...(state ?? fresh),
        revision,
        truncateBefore: decision.revives ? decision.firstRevision : truncateBefore,
      });
      return { kind: 'appended', revision, sequence: 0 };
    });
  }

  function apply(each: StreamWrite, decided: WriteOutcome | undefined): WriteOutcome {
    if (decided?.kind !== 'appended') return decided ?? { kind: 'deleted' };
    const stream = streamNamed(each.stream);
    if (stream.state.truncateBefore === softDeleted) {
      stream.state = { ...stream.state, truncateBefore: stream.state.revision + 1 };
    }
    for (const row of each.rows) {
      const revision = stream.sequences.length;
      const sequence = rows.length + 1;
      rows.push({ ...row, sequence, stream: each.stream, revision, recordedAtMs: clock.now() });
      stream.sequences.push(sequence);
      stream.revisionOf.set(row.eventId, revision);
    }
    stream.state = {
      ...stream.state,
      revision: stream.sequences.length - 1,
      tombstoned: each.tombstone === true,
    };
    if (each.retention !== undefined) {
      const target = streamNamed(each.retention.of);
      const { revision, tombstoned } = target.state;
      const decision = decideRetention(target.state, each.retention);
      const { truncateBefore } = decision.kind === 'retain' ? decision : target.state;
      target.state = { ...each.retention.values, truncateBefore, revision, tombstoned };
    }
    return { kind: 'appended', revision: stream.state.revision, sequence: rows.length };
  }

  function streamNamed(name: string): MemoryStream {
    let stream = streams.get(name);
    if (stream === undefined) {
      stream = { state: fresh, sequences: [], revisionOf: new Map() };
      streams.set(name, stream);
    }
    return stream;
  }

  function readAll(query: AllQuery): AllPage {
    const { direction, after, filter } = query;
    const forwards = direction === 'forwards';
    const step = forwards ? 1 : -1;
    const page: StoredRow[] = [];
    let sequence = forwards ? after + 1 : Math.min(after - 1, rows.length);
    // A filter that matches rarely returns early, so subscriptions can store checkpoints.
    let left: number = storeLimits.checkpointEvery;
    const isLast = createPageMeter(query);
    for (; sequence >= 1 && sequence <= rows.length; sequence += step) {
      if (left === 0) break;
      left -= 1;
      const row = rowAt(sequence);
      if (row === undefined || !matchesRow(filter, row, row.tenant)) continue;
      page.push(row);
      if (!isLast(row)) continue;
      sequence += step;
      break;
    }
    const end = forwards ? sequence > rows.length : sequence < 1;
    return { rows: page, considered: sequence - step, end };
  }

  function rowAt(sequence: number | undefined): MemoryRow | undefined {
    return sequence === undefined ? undefined : rows[sequence - 1];
  }

  function scavengeStream(stream: MemoryStream, nowMs: number): number {
    const first = stream.state.tombstoned ? stream.state.revision : firstVisible(stream.state);
    let removed = 0;
    for (const [revision, sequence] of stream.sequences.entries()) {
      const row = rowAt(sequence);
      if (removed === scavengeStepMax) break;
      if (sequence === undefined || row === undefined) continue;
      const last = revision === stream.state.revision;
      // The last event of a stream stays: it holds the stream's revision and age.
      if (last || (revision >= first && isVisible(stream.state, row, nowMs))) continue;
      rows[sequence - 1] = undefined;
      stream.sequences[revision] = undefined;
      if (stream.revisionOf.get(row.eventId) === revision) stream.revisionOf.delete(row.eventId);
      removed += 1;
    }
    return removed;
  }

  return createEventStore(engine, options);
}

const fresh: StreamState = { revision: -1, truncateBefore: 0, tombstoned: false };
