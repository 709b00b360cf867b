// Where the file's streams stand in the target: which of their events are there already, and at
// which revision the next one goes.

import { MillraceError } from '../../foundation/error.ts';
import type { EventStore, StreamInfo } from '../../store/event-store.ts';
import type { ExportedEvent } from './export-format.ts';

/**
 * A stream's place. The source's revisions and the target's are the same, unless a scavenge or a
 * filter left events out: then the target counts without the holes.
 */
export interface StreamPlace {
  /** The source's revision of the last event that was dealt with. */
  readonly source: number;
  /** The same event's revision in the target. */
  readonly target: number;
  /** The target's last event: the file's events up to it must be there. */
  readonly head: number;
  readonly tombstoned: boolean;
}

export interface StreamPlaces {
  /** The stream's place, looked up by the next event that the file has of it where it is unknown. */
  find(next: ExportedEvent): Promise<StreamPlace>;
  /** The place of a stream of which the file has nothing at hand; undefined: it is in neither. */
  findByName(stream: string): Promise<StreamPlace | undefined>;
  set(stream: string, place: StreamPlace): void;
  /** Somebody else writes to the target: its end is looked up again. */
  refresh(stream: string): Promise<void>;
}

export function createStreamPlaces(
  store: EventStore,
  options: {
    /** The target had no event at all, so that nothing needs to be looked up. */
    readonly empty: boolean;
    /** Places remembered at once, beside those of streams with holes. */
    readonly placesMax: number;
  },
): StreamPlaces {
  /** Oldest first, by their last use; found again by the event's own revision. */
  const even = new Map<string, StreamPlace>();
  /** Where the target counts differently: nothing else tells by how much. */
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
      // A stream that this run has met before and forgotten: what came before is all there.
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

/** The revision at which the target has, or gets, the event with this revision of the source. */
export function targetRevision({ source, target }: StreamPlace, revision: number): number {
  return revision > source ? target + 1 : target - (source - revision);
}

/** Refuses a target that has something else where the file has this event. */
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
    // Scavenged there: the slot is empty, and cannot be filled again.
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
