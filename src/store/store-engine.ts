// The port that an engine implements: write rows, read pages of rows, signal new rows. Everything that
// engines have in common (validation, envelopes, erasure, paging, live reading) is implemented once
// in `createEventStore`.

import type { SubjectKeys } from './erasure.ts';
import type { EventFilter } from './event-filter.ts';
import type { ExpectedRevision, StreamState } from './expected-revision.ts';
import type { PageBound } from './page-bound.ts';
import type { StoredRow } from './recorded-event.ts';

/** Optional features of an engine; the conformance suite tests only those that are declared. */
export interface StoreCapabilities {
  /** Several streams in one atomic append. */
  readonly multiStreamAppend: boolean;
  /** Append inside a transaction that the caller began. */
  readonly callerTransaction: boolean;
  /** Stored events survive a restart of the process. */
  readonly durable: boolean;
  /** Gets events from other processes, with a notification instead of polling. */
  readonly crossProcess: boolean;
  /** Supports `follows`: an append directly after an event named by its id. Default: no. */
  readonly followingAppend?: boolean | undefined;
  /** Supports `scavenge`. Default: yes; some servers remove hidden events by themselves. */
  readonly scavenge?: boolean | undefined;
  /** Stores the recording time with millisecond precision. Default: yes. */
  readonly exactTimes?: boolean | undefined;
  /** Reads of a stream can return stored events that retention or a deletion hides. Default: yes. */
  readonly hiddenEvents?: boolean | undefined;
  /** Recognizes every duplicate, also of an append by another process at the same time. Default: yes. */
  readonly exactDuplicates?: boolean | undefined;
  /** What the distance between two positions counts. Default: `events`. */
  readonly positionUnit?: PositionUnit | undefined;
}

/** `bytes`: positions are offsets in a log, so the number of events between two of them is unknown. */
export type PositionUnit = 'events' | 'bytes';

export interface RowToWrite {
  readonly eventId: string;
  readonly type: string;
  readonly tenant: string;
  readonly payload: string;
  readonly meta: string;
}

/** The retention settings in a stream's metadata; absent members are unset. */
export interface Retention {
  readonly truncateBefore?: number;
  readonly maxCount?: number;
  readonly maxAgeSeconds?: number;
}

/** Engines apply it with `decideRetention`, under the same lock as the append. */
export interface RetentionChange {
  readonly of: string;
  readonly values: Retention;
  /** The expected revision of the stream `of`, for a deletion. */
  readonly expected?: ExpectedRevision | undefined;
}

export interface StreamWrite {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly rows: readonly RowToWrite[];
  /** The id of the event at `expected`, which is then a number; only with `followingAppend`. */
  readonly follows?: string | undefined;
  /** The rows are metadata of the stream `of` and change its retention. */
  readonly retention?: RetentionChange | undefined;
  /** No append may ever follow this one. */
  readonly tombstone?: boolean | undefined;
}

export type WriteOutcome =
  | {
      readonly kind: 'appended' | 'duplicate';
      readonly revision: number;
      readonly sequence: number;
    }
  | { readonly kind: 'conflict'; readonly actual: number }
  | { readonly kind: 'deleted' };

/** A plan that Millrace passes as the transaction of an append; engines without `callerTransaction` may support it. */
export class EngineTransaction<Plan> {
  readonly plan: Plan;

  constructor(plan: Plan) {
    this.plan = plan;
  }
}

export interface WriteOptions {
  readonly signal?: AbortSignal | undefined;
  /** A transaction of the engine's driver, with `callerTransaction`; or an `EngineTransaction`. */
  readonly transaction?: unknown;
}

export interface StreamQuery extends PageBound {
  readonly stream: string;
  readonly direction: 'forwards' | 'backwards';
  /** Inclusive. */
  readonly from: number;
  /** Rows from this revision on are returned even if retention hides them: a live reader gets each event. */
  readonly liveFrom?: number | undefined;
  readonly nowMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface StreamPage {
  /** Undefined: the stream was never written to. */
  readonly state: StreamState | undefined;
  readonly rows: readonly StoredRow[];
  /** The page has all remaining rows. */
  readonly end: boolean;
}

/** The compiled filter that engines evaluate; a row must match all members. */
export interface RowFilter {
  /** Depends on the type only; engines call it once per type, not once per event. */
  readonly type: ((type: string) => boolean) | undefined;
  readonly category: string | undefined;
  readonly tenant: string | undefined;
  /** Called for each event that matches all other members. */
  readonly stream: ((stream: string) => boolean) | undefined;
  /** The original filter, for engines that pass parts of it to a server. */
  readonly given?: EventFilter | undefined;
}

export interface AllQuery extends PageBound {
  readonly direction: 'forwards' | 'backwards';
  /** Exclusive: rows above it forwards, rows below it backwards. */
  readonly after: number;
  /** Backwards only: the row at `after` belongs to the page, too. */
  readonly isInclusive?: boolean | undefined;
  readonly filter: RowFilter;
  /**
   * Undefined: a bounded read. False: a subscription that catches up. True: a subscription that waits with `whenMore`
   * at the end, so the engine may omit rows that it reports there.
   */
  readonly isLive?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface AllPage {
  readonly rows: readonly StoredRow[];
  /** All rows up to this sequence were checked: the next page starts here, even if no row matched. */
  readonly considered: number;
  /** The number of checked rows, if sequences do not count rows. */
  readonly scanned?: number | undefined;
  /** There were no further rows at the time of the read. */
  readonly end: boolean;
}

export interface ScavengeProgress {
  readonly streamsDone: number;
  readonly streamsTotal: number;
  readonly eventsRemoved: number;
}

export interface StoreEngine extends AsyncDisposable {
  readonly capabilities: StoreCapabilities;
  /** All or nothing. When an outcome is a conflict or a deletion, nothing was written. */
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  /**
   * The state of the stream, for engines whose pages do not contain it: then the state of a page only
   * reports whether the stream has a tombstone.
   */
  streamState?(stream: string): Promise<StreamState | undefined>;
  /** The states of many streams in one query; without it they are read one by one. */
  streamStates?(streams: readonly string[]): Promise<ReadonlyMap<string, StreamState | undefined>>;
  /** The event with this id in this stream, even if retention hides it. */
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
  /** The highest sequence below which no row can still appear. */
  head(): Promise<number>;
  /** The sequence of the last row recorded before this time; only if rows cannot be found by bisecting sequences. */
  positionBefore?(atMs: number): Promise<number>;
  /** Resolves when there may be rows above `after`, or after a timeout; rejects when aborted. */
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  /** Removes events hidden by retention, stream by stream. */
  scavenge(options: {
    readonly nowMs: number;
    readonly signal?: AbortSignal | undefined;
    readonly onProgress?: ((progress: ScavengeProgress) => void) | undefined;
  }): Promise<ScavengeProgress>;
  readonly subjectKeys: SubjectKeys;
}
