// The event store: the one truth that everything else reads.

import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import type { EventFilter } from './event-filter.ts';
import type { ExpectedRevision } from './expected-revision.ts';
import type { Position } from './position.ts';
import type { RecordedEvent } from './recorded-event.ts';
import type { ScavengeProgress, StoreCapabilities } from './store-engine.ts';

export interface AppendOptions {
  /** Default: `any`. */
  readonly expected?: ExpectedRevision | undefined;
  /**
   * The id of the event at the `expected` revision: unless readers still find it at the stream's end, it
   * is a `VERSION_CONFLICT`. For those who decide on what they remember (`followingAppend`).
   */
  readonly follows?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Appends inside a transaction of the caller's, where the engine can (`callerTransaction`). */
  readonly transaction?: unknown;
  /** To a stream of the system (`$…`), which is refused otherwise: for records of Millrace's own. */
  readonly system?: boolean | undefined;
}

export interface AppendResult {
  readonly stream: string;
  /** Of the last event of this append. */
  readonly revision: number;
  readonly position: Position;
  /** The same events had been appended before; nothing was written now. */
  readonly repeated: boolean;
}

export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly DomainEventEnvelope[];
  readonly expected?: ExpectedRevision | undefined;
  /** As of `append`. */
  readonly follows?: string | undefined;
}

export interface ReadOptions {
  readonly direction?: 'forwards' | 'backwards' | undefined;
  readonly limit?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadStreamOptions extends ReadOptions {
  /** Inclusive. Default: the stream's first event, or its last when reading backwards. */
  readonly from?: number | undefined;
}

export interface ReadAllOptions extends ReadOptions {
  /** Exclusive. Default: before the first event, or behind the last when reading backwards. */
  readonly after?: Position | undefined;
  readonly filter?: EventFilter | undefined;
}

/** Events one by one, or page by page; pages are fetched as they are asked for. */
export interface EventReader extends AsyncIterable<RecordedEvent> {
  pages(): AsyncIterable<readonly RecordedEvent[]>;
  toArray(): Promise<RecordedEvent[]>;
}

export interface SubscribeOptions {
  /** Exclusive. Default: before the first event. `end`: only what is appended from now on. */
  readonly after?: Position | 'end' | undefined;
  readonly filter?: EventFilter | undefined;
  readonly pageSize?: number | undefined;
  /** Without a match for so many sequences, a checkpoint tells how far it got. Default: 10,000. */
  readonly checkpointEvery?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface SubscribeToStreamOptions {
  /** Exclusive. Default: before the first event. `end`: only what is appended from now on. */
  readonly after?: number | 'end' | undefined;
  readonly pageSize?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a live subscription tells. `position` is always safe to keep as a checkpoint: everything up
 * to it that matches has been given out.
 */
export type FeedItem =
  | {
      readonly kind: 'events';
      readonly events: readonly RecordedEvent[];
      readonly position: Position;
    }
  /** Nothing matched for a while: a rarely matching filter need not start again from far behind. */
  | { readonly kind: 'checkpoint'; readonly position: Position }
  | { readonly kind: 'caughtUp'; readonly position: Position }
  | { readonly kind: 'fellBehind'; readonly position: Position };

export interface StreamMetadata {
  /** Events below this revision are hidden. */
  readonly truncateBefore?: number;
  /** Only the last so many events are visible. */
  readonly maxCount?: number;
  /** Only events younger than this are visible. */
  readonly maxAgeSeconds?: number;
  /** The user's own. */
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

  /** Acknowledged means durable. The same event ids again give the first result. */
  append(
    stream: string,
    events: readonly DomainEventEnvelope[],
    options?: AppendOptions,
  ): Promise<AppendResult>;

  /** All streams or none (`multiStreamAppend`). */
  appendMany(
    appends: readonly StreamAppend[],
    options?: Omit<AppendOptions, 'expected'>,
  ): Promise<readonly AppendResult[]>;

  /** A stream that does not exist, or was deleted, has no events. A tombstone: `STREAM_DELETED`. */
  readStream(stream: string, options?: ReadStreamOptions): EventReader;
  readAll(options?: ReadAllOptions): EventReader;
  /** The event with this id in this stream: how a repeated command finds its first result. */
  findEvent(stream: string, eventId: string): Promise<RecordedEvent | undefined>;

  /** Catches up, then follows; ends when its signal fires or the loop is left. */
  subscribe(options?: SubscribeOptions): AsyncIterable<FeedItem>;
  subscribeToStream(stream: string, options?: SubscribeToStreamOptions): AsyncIterable<FeedItem>;

  /** Undefined: nothing was ever written to the stream. */
  streamInfo(stream: string): Promise<StreamInfo | undefined>;
  setStreamMetadata(
    stream: string,
    metadata: StreamMetadata,
    options?: Pick<AppendOptions, 'system'>,
  ): Promise<void>;
  /** Hides all events; a new append brings the stream back and goes on counting. */
  deleteStream(
    stream: string,
    options?: { readonly expected?: ExpectedRevision | undefined },
  ): Promise<void>;
  /** Ends the stream for ever. */
  tombstoneStream(
    stream: string,
    options?: { readonly expected?: ExpectedRevision | undefined },
  ): Promise<void>;

  /** Behind the last event that readers can see. */
  head(): Promise<Position>;

  /** Removes for good what retention hides. */
  scavenge(options?: {
    readonly signal?: AbortSignal | undefined;
    readonly onProgress?: ((progress: ScavengeProgress) => void) | undefined;
  }): Promise<ScavengeProgress>;

  /** Destroys the subject's key: payloads that it protected read as forgotten from now on. */
  forget(subject: string): Promise<{ readonly forgotten: boolean }>;
}
