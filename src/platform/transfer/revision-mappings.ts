// Revision mappings of an import: which events of a stream exist in the target, and the revision of the next one.

import { MillraceError } from '../../foundation/error.ts';
import type { EventStore, StreamInfo } from '../../store/event-store.ts';
import type { ExportedEvent } from './export-format.ts';

/**
 * Maps the revisions of one stream. Revisions of source and target are equal, unless a scavenge or a filter removed
 * events: then the target has no gaps.
 */
export interface RevisionMapping {
  /** The source revision of the last processed event. */
  readonly source: number;
  /** The target revision of the same event. */
  readonly target: number;
  /** The last event of the target: the file's events up to it must exist. */
  readonly head: number;
  readonly tombstoned: boolean;
}

export interface RevisionMappings {
  /** The mapping of a stream; an unknown mapping is looked up by the stream's next event in the file. */
  find(next: ExportedEvent): Promise<RevisionMapping>;
  /** The mapping of a stream without an event at hand; undefined: it is unknown in file and target. */
  findByName(stream: string): Promise<RevisionMapping | undefined>;
  set(stream: string, mapping: RevisionMapping): void;
  /** Another process wrote to the target, so its last event is looked up again. */
  refresh(stream: string): Promise<void>;
}

export function createRevisionMappings(
  store: EventStore,
  options: {
    /** The target was empty, so no lookup is needed. */
    readonly empty: boolean;
    /** Cached mappings, in addition to streams with gaps. */
    readonly mappingsMax: number;
  },
): RevisionMappings {
  /** Least recently used first; can be looked up again by the event's revision. */
  const even = new Map<string, RevisionMapping>();
  /** Streams whose revisions differ in the target; this cannot be looked up. */
  const shifted = new Map<string, RevisionMapping>();
  const get = (stream: string): RevisionMapping | undefined =>
    shifted.get(stream) ?? even.get(stream);
  let isEmpty = options.empty;
  let remembersAll = true;

  const endOf = async (stream: string): Promise<Pick<RevisionMapping, 'head' | 'tombstoned'>> => {
    const nothing = isEmpty && remembersAll;
    const info: StreamInfo | undefined = nothing ? undefined : await store.streamInfo(stream);
    return { head: info?.revision ?? -1, tombstoned: info?.deleted === 'tombstone' };
  };

  function set(stream: string, mapping: RevisionMapping): void {
    even.delete(stream);
    if (mapping.source !== mapping.target) {
      shifted.set(stream, mapping);
      return;
    }
    even.set(stream, mapping);
    if (even.size <= options.mappingsMax) return;
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
      const mapping = (first: number): RevisionMapping => ({
        source: revision - 1,
        target: first - 1,
        ...end,
      });
      if (end.head === -1) return mapping(0);
      const found = await store.findEvent(stream, envelope.eventId);
      if (found !== undefined) return mapping(found.revision);
      if (revision <= end.head + 1) return mapping(revision);
      // A stream that was cached before in this run: its earlier events are stored.
      if (!remembersAll) return mapping(end.head + 1);
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
      const mapping = get(stream);
      if (mapping !== undefined) set(stream, { ...mapping, ...(await endOf(stream)) });
    },
  };
}

/** The target revision of the event with this source revision. */
export function targetRevision({ source, target }: RevisionMapping, revision: number): number {
  return revision > source ? target + 1 : target - (source - revision);
}

/** Throws if the target has another event at this revision. */
export async function assertPresent(
  store: EventStore,
  event: ExportedEvent,
  mapping: { readonly target: number; readonly tombstoned: boolean },
): Promise<void> {
  const { stream, envelope } = event;
  const { target, tombstoned } = mapping;
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
