// Reading: along a stream, and along all events as far as the log was copied.

import type { Filter } from 'mongodb';
import { firstVisible } from '../../store/retention.ts';
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
import type { EventDocument, MongodbCollections } from './mongodb-schema.ts';
import type { MongodbTypes } from './mongodb-types.ts';
import type { MongodbStreamState, StreamStates } from './stream-states.ts';

export interface MongodbReader {
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
}

const readLimits = {
  /** A filter by stream that matches rarely looks at so many events before it reports back. */
  scanWindow: 5_000,
  scanPage: 1_000,
} as const;

export interface ReaderParts {
  readonly collections: MongodbCollections;
  readonly log: CommitLog;
  readonly states: StreamStates;
  readonly types: MongodbTypes;
}

export function createMongodbReader(parts: ReaderParts): MongodbReader {
  const { log, states, types } = parts;
  const { events } = parts.collections;

  async function readStream(query: StreamQuery): Promise<StreamPage> {
    const head = await log.advance();
    const state = (await states.load([query.stream], head)).get(query.stream);
    if (state === undefined) return { state: undefined, rows: [] };
    const range = rangeOf(query, state);
    const sorting = query.direction === 'forwards' ? 1 : -1;
    const rows =
      range === undefined
        ? []
        : await events
            .find({ aggregateId: query.stream, ...range, position: { $lte: head.position } })
            .sort({ version: sorting })
            .limit(query.limit)
            .batchSize(query.limit)
            .toArray();
    const { revived: _revived, ...shown } = state;
    return { state: shown, rows: rows.map(toRow) };
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
    let low = bottom;
    let high = top;
    let looked = 0;
    while (looked < readLimits.scanWindow) {
      const limit = stream === undefined ? query.limit : readLimits.scanPage;
      const page = await events
        .find({ ...wanted, position: { $gt: low, $lte: high } })
        .sort({ position: forwards ? 1 : -1 })
        .limit(limit)
        .batchSize(limit)
        .toArray();
      looked += page.length;
      for (const document of page) {
        if (stream?.(document.aggregateId) === false) continue;
        rows.push(toRow(document));
        if (rows.length === query.limit) {
          return { rows, considered: document.position, end: false };
        }
      }
      if (page.length < limit) return { rows, considered: done, end: true };
      const last = page.at(-1)?.position ?? 0;
      if (forwards) low = last;
      else high = last - 1;
    }
    return { rows, considered: forwards ? low : high + 1, end: false };
  }

  /** The part of the filter that the database evaluates; undefined: nothing can match. */
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
        aggregateId: stream,
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

/** The versions that are asked for and visible; undefined: there are none. */
function rangeOf(
  { direction, from, nowMs }: StreamQuery,
  state: MongodbStreamState,
): Filter<EventDocument> | undefined {
  const first = firstVisible(state);
  const low = direction === 'forwards' ? Math.max(first, from) : first;
  const high = direction === 'forwards' ? state.revision : Math.min(from, state.revision);
  if (low > high) return undefined;
  const { maxAgeSeconds } = state;
  return {
    version: { $gte: low + 1, $lte: high + 1 },
    ...(maxAgeSeconds === undefined
      ? {}
      : { recordedAt: { $gt: new Date(nowMs - maxAgeSeconds * 1_000) } }),
  };
}

/** By the shorter of the two lists: what is wanted, or what is not. */
function typesBy(
  type: (type: string) => boolean,
  all: ReadonlySet<string>,
): Filter<EventDocument> | undefined {
  const wanted = [...all].filter((each) => type(each));
  if (wanted.length === 0) return undefined;
  if (wanted.length === all.size) return {};
  const others = [...all].filter((each) => !type(each));
  if (wanted.length <= others.length) return { eventType: { $in: wanted } };
  return { eventType: { $nin: others } };
}
