// Loads what a decision needs in addition to the stream states: stored events with the appended ids, and the
// events at the expected revisions.

import type { Filter } from 'mongodb';
import type { StreamWrite } from '../../store/store-engine.ts';
import type { KnownEvent, KnownStreams } from './decide-batch.ts';
import { eventIdOf } from './event-document.ts';
import type { EventDocument, LogPoint, MongodbCollections } from './collections.ts';
import type { StreamStateMap } from './stream-states.ts';

/** Writes that succeed or fail together. */
export type Unit = readonly StreamWrite[];

/** The most ids per query. */
const idsMax = 1_000;

type Found = Pick<EventDocument, '_id' | 'eventId' | 'stream' | 'version' | 'position'>;
const fields = { eventId: 1, stream: 1, version: 1, position: 1 };

export function streamsOfUnits(units: readonly Unit[]): ReadonlySet<string> {
  const streams = new Set<string>();
  for (const { stream, retention } of units.flat()) {
    streams.add(stream);
    if (retention !== undefined) streams.add(retention.of);
  }
  return streams;
}

/**
 * With a point of the log: queries the database as of that point. With `states only`: undefined if the states
 * are not sufficient.
 */
export async function loadKnownStreams(
  { events }: MongodbCollections,
  units: readonly Unit[],
  states: StreamStateMap,
  source: LogPoint | 'states only',
): Promise<KnownStreams | undefined> {
  const byIds: StreamWrite[] = [];
  const ranges: { stream: string; version: { $gte: number; $lte: number } }[] = [];
  for (const write of units.flat()) {
    const { stream, expected, rows } = write;
    const revision = states.get(stream)?.revision ?? -1;
    const exact = expected === 'none' ? -1 : expected;
    if (revision < 0) continue;
    if (typeof exact !== 'number') byIds.push(write);
    else if (exact < revision) {
      const version = { $gte: exact + 2, $lte: exact + 1 + rows.length };
      ranges.push({ stream, version });
    }
  }
  if (source === 'states only') {
    return byIds.length + ranges.length > 0 ? undefined : known(states, []);
  }
  const position = { $lte: source.position };
  const find = (filter: Filter<EventDocument>): Promise<Found[]> =>
    events
      .find({ ...filter, position })
      .project<Found>(fields)
      .toArray();
  const findIds = async (ids: Iterable<string>): Promise<Found[]> => {
    const some = chunks([...new Set(ids)]).map((chunk) =>
      find({ $or: [{ _id: { $in: chunk } }, { eventId: { $in: chunk } }] }),
    );
    return (await Promise.all(some)).flat();
  };

  const [firsts, ...inRanges] = await Promise.all([
    findIds(byIds.flatMap(({ rows }) => rows[0]?.eventId ?? [])),
    ...ranges.map(find),
  ]);
  const seen = new Set([...firsts.map(eventIdOf), ...repeatedWithin(units)]);
  // If the first event of an append is new, the append is new. The other ids matter only if it is not.
  const repeats = byIds.filter(({ rows }) => seen.has(rows[0]?.eventId ?? ''));
  const others = await findIds(
    repeats.flatMap(({ rows }) => rows.slice(1).map(({ eventId }) => eventId)),
  );
  return known(states, [...firsts, ...others, ...inRanges.flat()]);
}

/** Ids in more than one write: the later write may be a duplicate of the earlier one. */
function repeatedWithin(units: readonly Unit[]): ReadonlySet<string> {
  const once = new Set<string>();
  const more = new Set<string>();
  for (const { eventId } of units.flat().flatMap(({ rows }) => rows)) {
    if (once.has(eventId)) more.add(eventId);
    once.add(eventId);
  }
  return more;
}

function known(states: StreamStateMap, found: readonly Found[]): KnownStreams {
  const byId = new Map<string, KnownEvent>();
  const byRevision = new Map<string, KnownEvent>();
  for (const document of found.toSorted((a, b) => a.position - b.position)) {
    const { stream, version, position } = document;
    const event = { eventId: eventIdOf(document), revision: version - 1, position };
    byId.set(keyOf(stream, event.eventId), event);
    byRevision.set(keyOf(stream, event.revision), event);
  }
  return {
    states,
    eventById: (stream, eventId) => byId.get(keyOf(stream, eventId)),
    eventAt: (stream, revision) => byRevision.get(keyOf(stream, revision)),
  };
}

/** Stream names contain no line breaks. */
function keyOf(stream: string, part: string | number): string {
  return `${stream}\n${part}`;
}

function chunks(ids: readonly string[]): readonly (readonly string[])[] {
  const all: string[][] = [];
  for (let at = 0; at < ids.length; at += idsMax) all.push(ids.slice(at, at + idsMax));
  return all;
}
