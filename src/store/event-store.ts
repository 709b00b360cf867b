// The event store port.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import type { FormatOptions } from '../contracts/event-form.ts';
import type { PayloadOptions } from '../contracts/json-payload.ts';
import type { Clock } from '../foundation/clock.ts';
import type { IdSource } from '../foundation/ids.ts';
import type { Observer } from '../foundation/observer.ts';
import type { EventFilter } from './event-filter.ts';
import type { ExpectedRevision } from './expected-revision.ts';
import type { PersonalData } from './personal-data.ts';
import type { Position } from './position.ts';
import type { RecordedEvent } from './recorded-event.ts';
import type { ScavengeProgress, StoreCapabilities } from './store-engine.ts';

export interface EventStoreOptions extends PayloadOptions, FormatOptions {
  readonly clock?: Clock | undefined;
  readonly ids?: IdSource | undefined;
  readonly observer?: Observer | undefined;
  /**
   * `strict` (default): event types follow the naming rules and the stream belongs to the envelope's
   * tenant. `open`: any names, for servers that speak another system's protocol.
   */
  readonly names?: 'strict' | 'open' | undefined;
}

export interface AppendOptions {
  /** Default: `any`. */
  readonly expected?: ExpectedRevision | undefined;
  /**
   * The id of the event at the `expected` revision: unless it is still the last visible event, the append
   * is a `VERSION_CONFLICT`. For callers that decide on a cached state (`followingAppend`).
   */
  readonly follows?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Appends inside the caller's transaction, if the engine supports it (`callerTransaction`). */
  readonly transaction?: unknown;
  /** Allows an append to a system stream (`$…`), for records of Millrace itself. */
  readonly system?: boolean | undefined;
}

export interface AppendResult {
  readonly stream: string;
  /** Revision of the last event of this append. */
  readonly revision: number;
  /**
   * Of the last event; with `positionUnit` bytes, of the last event of all streams of the append. `startPosition` for a
   * duplicate whose first position is no longer known.
   */
  readonly position: Position;
  /**
   * The append is a duplicate: the events were appended before, and nothing was written. Without `exactDuplicates`,
   * false if another process appended them after the newest event that this process has read or appended.
   */
  readonly isDuplicate: boolean;
}

export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly DomainEventEnvelope[];
  readonly expected?: ExpectedRevision | undefined;
  /** The option of `AppendOptions` with this name. */
  readonly follows?: string | undefined;
}

/** How much of the store a reader has in memory. */
export interface PageOptions {
  /** The maximum number of events of a page. Default: 500. */
  readonly pageSize?: number | undefined;
  /** A page ends with the event that reaches this size in memory. Default and maximum: 2 MiB. */
  readonly pageBytes?: number | undefined;
  /** Called for each page, to wait until there is memory for it; then no page is fetched ahead. */
  readonly aroundLoad?: PageLoading | undefined;
}

export type PageLoading = <Page>(load: () => Promise<Page>) => Promise<Page>;

export interface ReadOptions extends PageOptions {
  readonly direction?: 'forwards' | 'backwards' | undefined;
  readonly limit?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadStreamOptions extends ReadOptions {
  /** Inclusive. Default: the stream's first event, or its last when reading backwards. */
  readonly from?: number | undefined;
  /**
   * Also returns stored events that retention or a deletion hides, to find copies of them. Ignored by engines without
   * `hiddenEvents`.
   */
  readonly hidden?: boolean | undefined;
}

export interface ReadAllOptions extends ReadOptions {
  /** Exclusive. Default: before the first event, or after the last when reading backwards. */
  readonly after?: Position | undefined;
  /** Backwards, instead of `after`: starts with the event at this position. */
  readonly upTo?: Position | undefined;
  readonly filter?: EventFilter | undefined;
}

/** Events one by one, or page by page; each page is fetched on demand. */
export interface EventReader extends AsyncIterable<RecordedEvent> {
  pages(): AsyncIterable<readonly RecordedEvent[]>;
  toArray(): Promise<RecordedEvent[]>;
}

export interface AllEventReader extends EventReader {
  /** Forwards: every matching event up to this position was returned. */
  readonly position: Position;
}

export interface SubscribeOptions extends PageOptions {
  /** Exclusive. Default: before the first event. `end`: only events appended from now on. */
  readonly after?: Position | 'end' | undefined;
  readonly filter?: EventFilter | undefined;
  /** A checkpoint is emitted after this many events without a match. Default: 10,000. */
  readonly checkpointEvery?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SubscribeToStreamOptions extends PageOptions {
  /** Exclusive. Default: before the first event. `end`: only events appended from now on. */
  readonly after?: number | 'end' | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The items of a live subscription. `position` is always safe to store as a checkpoint: all matching
 * events up to it were delivered.
 */
export type FeedItem =
  | {
      readonly kind: 'events';
      readonly events: readonly RecordedEvent[];
      readonly position: Position;
      /** The memory of the events, as pages count it. Absent: unknown. */
      readonly bytes?: number;
    }
  /** No match for a while: a reader with a rarely matching filter can resume from here. */
  | { readonly kind: 'checkpoint'; readonly position: Position }
  | { readonly kind: 'caughtUp'; readonly position: Position }
  | { readonly kind: 'fellBehind'; readonly position: Position };

export interface StreamMetadata {
  /** Events below this revision are hidden. */
  readonly truncateBefore?: number;
  /** Only the last `maxCount` events are visible. */
  readonly maxCount?: number;
  /** Only events younger than this are visible. */
  readonly maxAgeSeconds?: number;
  /** Members defined by the user. */
  readonly custom?: Readonly<Record<string, unknown>>;
}

export interface StreamInfo {
  readonly stream: string;
  /** The last event's revision; −1 while only metadata exists. */
  readonly revision: number;
  readonly deleted: 'no' | 'soft' | 'tombstone';
  readonly metadata: StreamMetadata;
}

export interface EventStore extends AsyncDisposable {
  readonly capabilities: StoreCapabilities;

  /** Resolves when the events are durable. An append with the same event ids returns the first result. */
  append(
    stream: string,
    events: readonly DomainEventEnvelope[],
    options?: AppendOptions,
  ): Promise<AppendResult>;

  /** Appends to all streams or to none (`multiStreamAppend`). */
  appendMany(
    appends: readonly StreamAppend[],
    options?: Omit<AppendOptions, 'expected'>,
  ): Promise<readonly AppendResult[]>;

  /** A stream that does not exist or was deleted has no events. A tombstone throws `STREAM_DELETED`. */
  readStream(stream: string, options?: ReadStreamOptions): EventReader;
  readAll(options?: ReadAllOptions): AllEventReader;
  /** The event with this id in this stream; duplicate commands find their first result with it. */
  findEvent(stream: string, eventId: string): Promise<RecordedEvent | undefined>;

  /** For each event, whether its stream still shows it: false after truncation, deletion and expiry. */
  areVisible(events: readonly RecordedEvent[]): Promise<readonly boolean[]>;

  /** Catches up, then follows new events; ends when the signal aborts or the loop exits. */
  subscribe(options?: SubscribeOptions): AsyncIterable<FeedItem>;
  subscribeToStream(stream: string, options?: SubscribeToStreamOptions): AsyncIterable<FeedItem>;

  /** Undefined: the stream was never written to. */
  streamInfo(stream: string): Promise<StreamInfo | undefined>;
  setStreamMetadata(
    stream: string,
    metadata: StreamMetadata,
    options?: Pick<AppendOptions, 'system'>,
  ): Promise<void>;
  /** Hides all events; a new append revives the stream and continues its revisions. */
  deleteStream(
    stream: string,
    options?: {
      readonly expected?: ExpectedRevision | undefined;
      /** Whether the restored stream has its other metadata. Default: yes; EventStoreDB drops it. */
      readonly keepsMetadata?: boolean | undefined;
    },
  ): Promise<void>;
  /** Deletes the stream permanently: no further append is possible. */
  tombstoneStream(
    stream: string,
    options?: { readonly expected?: ExpectedRevision | undefined },
  ): Promise<void>;

  /** The position of the last event visible to readers. */
  head(): Promise<Position>;
  /** The position of the last event recorded before this time, as precise as the clocks of the appending processes. */
  positionBefore(atMs: number): Promise<Position>;

  /** Permanently removes events hidden by retention. */
  scavenge(options?: {
    readonly signal?: AbortSignal | undefined;
    readonly onProgress?: ((progress: ScavengeProgress) => void) | undefined;
  }): Promise<ScavengeProgress>;

  /** Destroys the subject's key: payloads encrypted with it are read as forgotten. */
  forget(subject: string): Promise<{ readonly forgotten: boolean }>;
  /** For copies of personal data in messages and jobs: pass it to the bus and to `createTasks`. */
  readonly personalData: PersonalData;
}
