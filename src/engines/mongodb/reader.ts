// Reads streams and all events up to the head of the commit log.

import type { Filter } from 'mongodb';
import { createPageMeter } from '../../store/page-bound.ts';
import { visibleRange } from '../../store/retention.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type {
  AllPage,
  AllQuery,
  RowFilter,
  StreamPage,
  StreamQuery,
} from '../../store/store-engine.ts';
import type { CommitLog } from './commit-log.ts';
import { toRow } from './event-document.ts';
import type { EventDocument, MongodbCollections } from './collections.ts';
import type { MongodbEventTypes } from './event-types.ts';
import type { StreamStates } from './stream-states.ts';

export interface MongodbReader {
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
}

const readLimits = {
  /** A filter by stream scans at most this number of events per page. */
  scanWindow: 5_000,
  scanPage: 1_000,
} as const;

export interface ReaderParts {
  readonly collections: MongodbCollections;
  readonly log: CommitLog;
  readonly states: StreamStates;
  readonly types: MongodbEventTypes;
}

export function createMongodbReader(parts: ReaderParts): MongodbReader {
  const { log, states, types } = parts;
  const { events } = parts.collections;

  async function readStream(query: StreamQuery): Promise<StreamPage> {
    const head = await log.advance();
    const state = (await states.load([query.stream], head)).get(query.stream);
    if (state === undefined) return { state: undefined, rows: [], end: true };
    const range = visibleRange(query, state);
    const { revived: _revived, ...shown } = state;
    if (range === undefined) return { state: shown, rows: [], end: true };
    const found = events
      .find({
        stream: query.stream,
        version: { $gte: range.low + 1, $lte: range.high + 1 },
        ...(state.maxAgeSeconds === undefined
          ? {}
          : { recordedAt: { $gt: new Date(range.recordedAfterMs) } }),
        position: { $lte: head.position },
      })
      .sort({ version: query.direction === 'forwards' ? 1 : -1 })
      .limit(query.limit)
      .batchSize(query.limit);
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    // A batch has at most 16 MB, so leaving the loop early bounds the memory.
    for await (const document of found) {
      const row = toRow(document);
      rows.push(row);
      if (isLast(row)) return { state: shown, rows, end: false };
    }
    return { state: shown, rows, end: true };
  }

  async function readAll(query: AllQuery): Promise<AllPage> {
    const head = await log.advance();
    const forwards = query.direction === 'forwards';
    const bottom = forwards ? query.after : 0;
    const top = forwards ? head.position : Math.min(head.position, query.after - 1);
    const done = forwards ? Math.max(query.after, head.position) : 0;
    const wanted = await wantedBy(query.filter);
    if (wanted === undefined || top <= bottom) return { rows: [], considered: done, end: true };

    const { stream } = query.filter;
    const rows: StoredRow[] = [];
    const isLast = createPageMeter(query);
    let low = bottom;
    let high = top;
    let scanned = 0;
    while (scanned < readLimits.scanWindow) {
      const limit = stream === undefined ? query.limit : readLimits.scanPage;
      const page = events
        .find({ ...wanted, position: { $gt: low, $lte: high } })
        .sort({ position: forwards ? 1 : -1 })
        .limit(limit)
        .batchSize(limit);
      let count = 0;
      let last = 0;
      for await (const document of page) {
        count += 1;
        last = document.position;
        if (stream?.(document.stream) === false) continue;
        const row = toRow(document);
        rows.push(row);
        if (isLast(row)) return { rows, considered: last, end: false };
      }
      if (count < limit) return { rows, considered: done, end: true };
      scanned += count;
      if (forwards) low = last;
      else high = last - 1;
    }
    return { rows, considered: forwards ? low : high + 1, end: false };
  }

  /** The part of the filter that the database evaluates; undefined: no event can match. */
  async function wantedBy(filter: RowFilter): Promise<Filter<EventDocument> | undefined> {
    const { category, tenant, type } = filter;
    const eventType = type === undefined ? {} : typesBy(type, await types.all());
    if (eventType === undefined) return undefined;
    return {
      ...eventType,
      ...(category === undefined ? {} : { category }),
      ...(tenant === undefined ? {} : { tenant }),
    };
  }

  async function findEvent(stream: string, eventId: string): Promise<StoredRow | undefined> {
    const { position } = await log.advance();
    const [found] = await events
      .find({
        stream,
        $or: [{ _id: eventId }, { eventId }],
        position: { $lte: position },
      })
      .sort({ version: -1 })
      .limit(1)
      .toArray();
    return found === undefined ? undefined : toRow(found);
  }

  return { readStream, readAll, findEvent };
}

/** Filters by included or excluded types, whichever list is shorter. */
function typesBy(
  type: (type: string) => boolean,
  all: ReadonlySet<string>,
): Filter<EventDocument> | undefined {
  const wanted = [...all].filter((name) => type(name));
  if (wanted.length === 0) return undefined;
  if (wanted.length === all.size) return {};
  const others = [...all].filter((name) => !type(name));
  if (wanted.length <= others.length) return { eventType: { $in: wanted } };
  return { eventType: { $nin: others } };
}
