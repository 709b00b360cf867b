// What an engine has to bring: rows in, pages of rows out, and a nudge when there is more. All that
// engines have in common (validation, envelopes, erasure, paging, live reading) is built on top of
// it once, by `createEventStore`.

import type { EventFilter } from './event-filter.ts';
import type { ExpectedRevision, StreamState } from './expected-revision.ts';
import type { StoredRow } from './recorded-event.ts';

/** What an engine can do beyond the common part; the conformance suite asks before it tests. */
export interface StoreCapabilities {
  /** Several streams in one atomic append. */
  readonly multiStreamAppend: boolean;
  /** Append inside a transaction that the caller began. */
  readonly callerTransaction: boolean;
  /** Survives the end of the process. */
  readonly durable: boolean;
  /** Sees what other processes append, and is told of it without waiting for a poll. */
  readonly crossProcess: boolean;
  /** Appends behind an event that is named by its id (`follows`). Default: no. */
  readonly followingAppend?: boolean | undefined;
  /** Removes what retention hides when it is asked to. Default: yes; some servers do it their own way. */
  readonly scavenge?: boolean | undefined;
  /** Tells when an event was recorded to the millisecond. Default: yes. */
  readonly exactTimes?: boolean | undefined;
}

export interface RowToWrite {
  readonly eventId: string;
  readonly type: string;
  readonly tenant: string;
  readonly payload: string;
  readonly meta: string;
}

/** A stream's retention as its metadata states it; absent members are unset. */
export interface Retention {
  readonly truncateBefore?: number;
  readonly maxCount?: number;
  readonly maxAgeSeconds?: number;
}

/** Engines ask `decideRetention` what it does, under the same lock as the append. */
export interface RetentionChange {
  readonly of: string;
  readonly values: Retention;
  /** What the stream `of` must be at, where its retention is changed by a deletion. */
  readonly expected?: ExpectedRevision | undefined;
}

export interface StreamWrite {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly rows: readonly RowToWrite[];
  /** The id of the event at `expected`, a number then; only with `followingAppend`. */
  readonly follows?: string | undefined;
  /** These rows are metadata of `of`: its retention changes with them. */
  readonly retention?: RetentionChange | undefined;
  /** No append may ever follow this one. */
  readonly tombstone?: boolean | undefined;
}

export type WriteOutcome =
  | {
      readonly kind: 'appended' | 'repeated';
      readonly revision: number;
      readonly sequence: number;
    }
  | { readonly kind: 'conflict'; readonly actual: number }
  | { readonly kind: 'deleted' };

export interface WriteOptions {
  readonly signal?: AbortSignal | undefined;
  /** The engine's own kind of transaction; only with `callerTransaction`. */
  readonly transaction?: unknown;
}

export interface StreamQuery {
  readonly stream: string;
  readonly direction: 'forwards' | 'backwards';
  /** Inclusive. */
  readonly from: number;
  readonly limit: number;
  readonly nowMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface StreamPage {
  /** Undefined: nothing was ever written to the stream. */
  readonly state: StreamState | undefined;
  readonly rows: readonly StoredRow[];
}

/** The part of a filter that engines evaluate themselves; members are alternatives, parts all hold. */
export interface RowFilter {
  /** Decides by type alone; engines ask once per type, not once per event. */
  readonly type: ((type: string) => boolean) | undefined;
  readonly category: string | undefined;
  readonly tenant: string | undefined;
  /** Decides by stream; asked for each event that passed the rest. */
  readonly stream: ((stream: string) => boolean) | undefined;
  /** As the caller wrote it, for engines that hand parts of it to a server. */
  readonly given?: EventFilter | undefined;
}

export interface AllQuery {
  readonly direction: 'forwards' | 'backwards';
  /** Exclusive; forwards what is above it, backwards what is below it. */
  readonly after: number;
  readonly limit: number;
  readonly filter: RowFilter;
  /** Whoever asks waits with `whenMore` at the end: what others append meanwhile may be left to that. */
  readonly isLive?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface AllPage {
  readonly rows: readonly StoredRow[];
  /** Everything up to here was looked at: where the next page begins, also when no row matched. */
  readonly considered: number;
  /** There was nothing more at the time of reading. */
  readonly end: boolean;
}

export interface ScavengeProgress {
  readonly streamsDone: number;
  readonly streamsTotal: number;
  readonly eventsRemoved: number;
}

export interface SubjectKeys {
  /** The subjects' keys; a forgotten subject has none, an unknown one is made when `create`. */
  get(
    subjects: readonly string[],
    options: {
      readonly create: boolean;
      /** The caller's, where the append is a part of it; the engine need not use it. */
      readonly transaction?: unknown;
    },
  ): Promise<ReadonlyMap<string, SubjectKey>>;
  /** Destroys the key for ever; true when there was one to destroy. */
  forget(subject: string, nowMs: number): Promise<boolean>;
}

export type SubjectKey =
  | { readonly kind: 'key'; readonly key: Uint8Array }
  | { readonly kind: 'forgotten'; readonly forgottenAtMs: number };

export interface StoreEngine extends AsyncDisposable {
  readonly capabilities: StoreCapabilities;
  /** All or nothing. When an outcome is a conflict or a deletion, nothing was written. */
  write(writes: readonly StreamWrite[], options: WriteOptions): Promise<readonly WriteOutcome[]>;
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  /**
   * What the stream is, for engines whose pages cannot tell: then the state of a page need only say
   * whether the stream has a tombstone.
   */
  streamState?(stream: string): Promise<StreamState | undefined>;
  /** The event with this id in this stream, hidden by retention or not. */
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
  /** The highest sequence below which nothing can still appear. */
  head(): Promise<number>;
  /** Resolves when there may be something above `after`, or after a while; rejects when aborted. */
  whenMore(after: number, signal: AbortSignal): Promise<void>;
  /** Removes what retention hides, stream by stream. */
  scavenge(options: {
    readonly nowMs: number;
    readonly signal?: AbortSignal | undefined;
    readonly onProgress?: ((progress: ScavengeProgress) => void) | undefined;
  }): Promise<ScavengeProgress>;
  readonly subjectKeys: SubjectKeys;
}
