// The places of the file's streams in the target: which events exist there, and the revision of the next one.

import { MillraceError } from '../../foundation/error.ts';
import type { EventStore, StreamInfo } from '../../store/event-store.ts';
import type { ExportedEvent } from './export-format.ts';

/**
 * A stream's place. The revisions of source and target are equal, unless a scavenge or a filter removed events: then
 * the target has no gaps.
 */
export interface StreamPlace {
  /** The source revision of the last processed event. */
  readonly source: number;
  /** The target revision of the same event. */
  readonly target: number;
  /** The last event of the target: the file's events up to it must exist. */
  readonly head: number;
  readonly tombstoned: boolean;
}

export interface StreamPlaces {
  /** The place of a stream; an unknown one is looked up by the stream's next event in the file. */
  find(next: ExportedEvent): Promise<StreamPlace>;
  /** The place of a stream without an event at hand; undefined: it is unknown in file and target. */
  findByName(stream: string): Promise<StreamPlace | undefined>;
  set(stream: string, place: StreamPlace): void;
  /** Another process wrote to the target, so its last event is looked up again. */
  refresh(stream: string): Promise<void>;
}

export function createStreamPlaces(
  store: EventStore,
  options: {
    /** The target was empty, so no lookup is needed. */
    readonly empty: boolean;
    /** Cached places, in addition to streams with gaps. */
    readonly placesMax: number;
  },
): StreamPlaces {
  /** Least recently used first; can be looked up again by the event's revision. */
  const even = new Map<string, StreamPlace>();
  /** Streams whose revisions differ in the target; this cannot be looked up. */
  const shifted = new Map<string, StreamPlace>();
  const get = (stream: string): StreamPlace | undefined => shifted.get(stream) ?? even.get(stream);
  let isEmpty = options.empty;
  let remembersAll = true;

  const endOf = async (stream: string): Promise<Pick<StreamPlace, 'head' | 'tombstoned'>> => {
    const nothing = isEmpty && remembersAll;
    const info: StreamInfo | undefined = nothing ? undefined : await store.streamInfo(stream);
    return { head: info?.revision ?? -1, tombstoned: info?.deleted === 'tombstone' };
  };

  function set(stream: string, place: StreamPlace): void {
    even.delete(stream);
    if (place.source !== place.target) {
      shifted.set(stream, place);
      return;
    }
    even.set(stream, place);
    if (even.size <= options.placesMax) return;
    remembersAll = false;
    const [oldest] = even.keys();
    if (oldest !== undefined) even.delete(oldest);
  }

  return {
    async find(next) {
      const { stream, revision, envelope } = next;
      const known = get(stream);
      if (known !== undefined) return known;
      const end = await endOf(stream);
      const place = (first: number): StreamPlace => ({
        source: revision - 1,
        target: first - 1,
        ...end,
      });
      if (end.head === -1) return place(0);
      const found = await store.findEvent(stream, envelope.eventId);
      if (found !== undefined) return place(found.revision);
      if (revision <= end.head + 1) return place(revision);
      // A stream that was cached before in this run: its earlier events are stored.
      if (!remembersAll) return place(end.head + 1);
      throw diverged(next, `ends at revision ${end.head}: events in between are missing`);
    },

    async findByName(stream) {
      const known = get(stream);
      if (known !== undefined) return known;
      const end = await endOf(stream);
      return end.head === -1 ? undefined : { source: end.head, target: end.head, ...end };
    },

    set,

    async refresh(stream) {
      isEmpty = false;
      const place = get(stream);
      if (place !== undefined) set(stream, { ...place, ...(await endOf(stream)) });
    },
  };
}

/** The target revision of the event with this source revision. */
export function targetRevision({ source, target }: StreamPlace, revision: number): number {
  return revision > source ? target + 1 : target - (source - revision);
}

/** Throws if the target has another event in this place. */
export async function assertPresent(
  store: EventStore,
  event: ExportedEvent,
  place: { readonly target: number; readonly tombstoned: boolean },
): Promise<void> {
  const { stream, envelope } = event;
  const { target, tombstoned } = place;
  const found = await store.findEvent(stream, envelope.eventId);
  if (found?.revision === target) return;
  if (found === undefined) {
    // The target has scavenged this event, so its revision cannot be written again.
    if (tombstoned) return;
    const [visible] = await store.readStream(stream, { from: target, limit: 1 }).toArray();
    if (visible?.revision !== target) return;
  }
  throw diverged(event, `has another event at revision ${target}`);
}

export function diverged({ stream, line, revision }: ExportedEvent, reason: string): MillraceError {
  return new MillraceError(
    'IMPORT_DIVERGED',
    `the target has diverged: its stream '${stream}' ${reason} (line ${line}, revision ${revision} of the source)`,
    { retryable: false, details: { stream, line, revision, reason } },
  );
}
