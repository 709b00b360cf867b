// The log of one node: all records in order, and the streams that they form. Writes, replication and a restart from the
// file apply the same entries, so all nodes have the same sequences, revisions and times.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createWaiters, type Waiters } from '../../foundation/async/waiters.ts';
import { matchesRow } from '../../store/event-filter.ts';
import { softDeleted, type StreamState } from '../../store/expected-revision.ts';
import { createPageMeter } from '../../store/page-bound.ts';
import { storeLimits } from '../../store/prepare-append.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import { firstVisible, isVisible } from '../../store/retention.ts';
import type {
  AllPage,
  AllQuery,
  Retention,
  RowToWrite,
  StreamPage,
  StreamQuery,
} from '../../store/store-engine.ts';

/** One record; sequence and revision follow from its place in the log. */
export interface LogRecord {
  readonly stream: string;
  readonly row: RowToWrite;
  readonly recordedAtMs: number;
  /** The record is metadata of another stream. */
  readonly retention?: { readonly of: string; readonly values: Retention } | undefined;
  readonly tombstone?: boolean | undefined;
}

/** A new record, or the sequences of scavenged ones. */
export type LogEntry = { readonly record: LogRecord } | { readonly removed: readonly number[] };

export interface LoggedStream {
  state: StreamState;
  /** By revision; undefined: scavenged. */
  readonly sequences: (number | undefined)[];
  readonly revisionOf: Map<string, number>;
}

export interface LoggedRow extends StoredRow {
  readonly tenant: string;
}

const fresh: StreamState = { revision: -1, truncateBefore: 0, tombstoned: false };

export class RecordLog {
  readonly waiters: Waiters = createWaiters();
  readonly #rows: (LoggedRow | undefined)[] = [];
  readonly #streams = new Map<string, LoggedStream>();
  /** Records up to here are in chunks that a scavenge has rewritten. */
  scavengedUpTo = 0;

  get head(): number {
    return this.#rows.length;
  }

  streamNamed(name: string): LoggedStream | undefined {
    return this.#streams.get(name);
  }

  rowAt(sequence: number | undefined): LoggedRow | undefined {
    return sequence === undefined ? undefined : this.#rows[sequence - 1];
  }

  add(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      if ('removed' in entry) this.#remove(entry.removed);
      else this.#append(entry.record);
    }
    this.waiters.wakeAll();
  }

  /** The records that a scavenge removes: those that retention hides, and all before a tombstone. */
  hidden(nowMs: number): readonly number[] {
    return [...this.#streams.values()].flatMap((stream) => this.#hiddenIn(stream, nowMs));
  }

  readStream(query: StreamQuery): StreamPage {
    const { direction, from, nowMs } = query;
    const found = this.#streams.get(query.stream);
    if (found === undefined) return { state: undefined, rows: [], end: true };
    const { state, sequences } = found;
    const first = firstVisible(state);
    const [start, stop, step] =
      direction === 'forwards'
        ? [Math.max(from, first), state.revision + 1, 1]
        : [Math.min(from, state.revision), first - 1, -1];
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    for (let revision = start; (stop - revision) * step > 0; revision += step) {
      const row = this.rowAt(sequences[revision]);
      if (row === undefined || !isVisible(state, row, nowMs)) continue;
      rows.push(row);
      if (isLast(row)) return { state, rows, end: false };
    }
    return { state, rows, end: true };
  }

  readAll(query: AllQuery): AllPage {
    const { direction, after, filter } = query;
    const step = direction === 'forwards' ? 1 : -1;
    const start = step === 1 ? after + 1 : Math.min(after - 1, this.head);
    const stop = step === 1 ? this.head + 1 : 0;
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    const until = start + step * Math.min(storeLimits.checkpointEvery, Math.abs(stop - start));
    let sequence = start;
    for (let isFull = false; !isFull && (until - sequence) * step > 0; sequence += step) {
      const row = this.rowAt(sequence);
      if (row === undefined || !matchesRow(filter, row, row.tenant)) continue;
      rows.push(row);
      isFull = isLast(row);
    }
    return { rows, considered: sequence - step, end: (stop - sequence) * step <= 0 };
  }

  findEvent(stream: string, eventId: string): StoredRow | undefined {
    const found = this.#streams.get(stream);
    const revision = found?.revisionOf.get(eventId);
    return revision === undefined ? undefined : this.rowAt(found?.sequences[revision]);
  }

  #append({ stream: name, row, recordedAtMs, retention, tombstone }: LogRecord): void {
    const stream = this.#streamToWrite(name);
    const { state } = stream;
    const revision = stream.sequences.length;
    const sequence = this.#rows.length + 1;
    this.#rows.push({ ...row, sequence, stream: name, revision, recordedAtMs });
    stream.sequences.push(sequence);
    stream.revisionOf.set(row.eventId, revision);
    const isRevived = state.truncateBefore === softDeleted;
    stream.state = {
      ...state,
      revision,
      truncateBefore: isRevived ? revision : state.truncateBefore,
      tombstoned: tombstone === true,
    };
    if (retention === undefined) return;
    const target = this.#streamToWrite(retention.of);
    const { revision: last, tombstoned } = target.state;
    target.state = { truncateBefore: 0, ...retention.values, revision: last, tombstoned };
  }

  #remove(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      const row = this.rowAt(sequence);
      const stream = row === undefined ? undefined : this.#streams.get(row.stream);
      if (row === undefined || stream === undefined) continue;
      this.#rows[sequence - 1] = undefined;
      stream.sequences[row.revision] = undefined;
      if (stream.revisionOf.get(row.eventId) === row.revision) {
        stream.revisionOf.delete(row.eventId);
      }
    }
    this.scavengedUpTo = this.head;
  }

  /** The last event of a stream stays: it holds the stream's revision. */
  #hiddenIn({ state, sequences }: LoggedStream, nowMs: number): number[] {
    return sequences.slice(0, -1).flatMap((sequence) => {
      const row = this.rowAt(sequence);
      if (row === undefined) return [];
      return state.tombstoned || !isVisible(state, row, nowMs) ? [row.sequence] : [];
    });
  }

  #streamToWrite(name: string): LoggedStream {
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { state: fresh, sequences: [], revisionOf: new Map() };
      this.#streams.set(name, stream);
    }
    return stream;
  }
}

/** The entries of the file; without those that a killed process did not write completely. */
export function readEntries(file: string): readonly LogEntry[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, 'utf8');
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  if (complete.length < text.length) writeFileSync(file, complete);
  const lines = complete.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as LogEntry);
}

export function appendEntries(file: string, entries: readonly LogEntry[]): void {
  appendFileSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}
