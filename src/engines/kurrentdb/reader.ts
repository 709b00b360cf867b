// Reads pages of a stream and of all events, single events by id, and stream states.

import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { TailRow } from '../../store/append-tail.ts';
import type { StreamState } from '../../store/expected-revision.ts';
import { softDeleted } from '../../store/expected-revision.ts';
import { createPageMeter, type PageBound } from '../../store/page-bound.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type {
  AllQuery,
  RowFilter,
  StoreEngine,
  StreamPage,
  StreamQuery,
} from '../../store/store-engine.ts';
import { fromMetadataPayload, metadataStream } from '../../store/stream-metadata.ts';
import {
  eventUuid,
  fromClientRecord,
  recordedAtMs,
  sequenceOf,
  toClientEvent,
} from './event-record.ts';
import type { Client, ClientRecord } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { isKind, rejectionOf } from './errors.ts';
import { isWanted, mayMatch, onStream, pushDown, type PushedDown } from './push-down.ts';
import { createPageCollector, type RecordsPage } from './records-page.ts';

type EngineReads = Pick<
  StoreEngine,
  'readStream' | 'findEvent' | 'head' | 'positionBefore' | 'streamState'
>;

export interface KurrentdbReader extends Required<EngineReads> {
  /** The highest position that was read or acknowledged. */
  readonly highest: number;
  saw(sequence: number): void;
  readonly readAll: (query: AllQuery) => Promise<RecordsPage>;
  /** The last of these events, if all are among the newest events of the stream, or after the position. */
  findAll(stream: string, eventIds: readonly string[], after: number): Promise<TailRow | undefined>;
  /** The last visible event; from the leader, unless the URL prefers followers. */
  newest(stream: string): Promise<StoredRow | undefined>;
  /** The last revision of a stream that cannot be read. */
  hiddenRevision(stream: string): Promise<number | 'tombstone'>;
}

/** The records that one read requests from the server. */
const readMax = 500;
/** A search among the newest events reads at least so many, because an append may repeat parts of earlier ones. */
const recent = { min: 1_000, max: 10_000 } as const;
/** How long a read waits for a node that is behind a position that the store has given out. */
const lagging = { waitMs: 50, attemptsMax: 100 } as const;

const all = Number.MAX_SAFE_INTEGER;
const newestFirst = { direction: 'backwards', from: all, limit: all } as const;
const oldestFirst = { direction: 'forwards', from: 0 } as const;
const backwards = { direction: 'backwards', fromPosition: 'end' } as const;
const tombstone: StreamState = { revision: -1, truncateBefore: 0, tombstoned: true };

export function createKurrentdbReader(
  connection: KurrentdbConnection,
  names: 'strict' | 'open',
): KurrentdbReader {
  let highest = 0;
  /** Subscriptions that catch up and have no further match: asking the server again is a waste. */
  const withoutMatch = new WeakSet<RowFilter>();
  const saw = (sequence: number): void => {
    if (sequence > highest) highest = sequence;
  };

  /** Calls `isLast` with each visible event until it returns true. A missing stream has no events. */
  async function visit(
    query: StreamVisit,
    isLast: (row: TailRow) => boolean,
  ): Promise<'stopped' | 'end' | 'tombstone'> {
    const { stream, direction, from, limit: maxCount, fromLeader = false, signal } = query;
    const fromRevision = from === Number.MAX_SAFE_INTEGER ? 'end' : BigInt(from);
    const options = { direction, fromRevision, maxCount, requiresLeader: fromLeader } as const;
    try {
      return await connection.use(async (client) => {
        for await (const record of recordsOf(client.readStream(stream, options))) {
          const row = fromClientRecord(record);
          saw(row.sequence);
          if (isLast(row)) return 'stopped';
        }
        return 'end';
      }, signal);
    } catch (error) {
      // A client that prefers followers cannot ask the leader; a follower may lack the newest events.
      const isFollower = fromLeader && isKind(error, 'not-leader');
      if (isFollower) return visit({ ...query, fromLeader: false }, isLast);
      if (isKind(error, 'stream-not-found')) return 'end';
      if (isKind(error, 'stream-deleted')) return 'tombstone';
      throw error;
    }
  }

  async function readStream(query: StreamVisit & PageBound): Promise<StreamPage> {
    const rows: TailRow[] = [];
    const isLast = createPageMeter(query);
    const visited = await visit(query, (row) => {
      rows.push(row);
      return isLast(row);
    });
    if (visited === 'tombstone') return { state: tombstone, rows: [], end: true };
    return { state: undefined, rows, end: visited === 'end' };
  }

  /** The first or the last visible event. */
  function edge(stream: string, end: Omit<StreamVisit, 'stream' | 'limit'>): Promise<StreamPage> {
    return readStream({ ...end, stream, limit: 1, bytesMax: 1 });
  }

  /**
   * The server filters the pages of bounded reads and of subscriptions that catch up. Their position is that of the last
   * record that the server returned.
   */
  async function readAll(query: AllQuery): Promise<RecordsPage> {
    const { direction, after, filter, isInclusive = false, isLive, signal } = query;
    if (direction === 'backwards' && after === 0) return { rows: [], considered: 0, end: true };
    const at = isInclusive ? await rowAt(after, signal) : undefined;
    if (at !== undefined && isWanted(filter, at)) {
      return { rows: [at], considered: after, end: false };
    }
    if (isLive === true) withoutMatch.delete(filter);
    if (isLive === true || withoutMatch.has(filter)) return readPage(query);
    const pushed = pushDown(filter, names);
    const page = await readPage({ ...query, ...pushed });
    if (isLive === undefined || pushed.server === undefined) return page;
    if (page.considered > after) return { ...page, end: false };
    // The server does not say how far it searched, so the rest is read without its filter.
    withoutMatch.add(filter);
    return readPage(query);
  }

  /** Reads one page. Its position is that of a record which this read returned. */
  async function readPage(query: PageQuery): Promise<RecordsPage> {
    const { direction, after, limit, filter, server, isExact = false } = query;
    // One more on each side: a forward read starts with the record at its position, if that still exists.
    const { maxCount = Math.max(limit + 2, isExact ? 0 : readMax) } = query;
    const collector = createPageCollector(query);
    let read = 0;
    const fromPosition = positionOf(after, direction);
    const options = { direction, fromPosition, maxCount, ...(server && { filter: server }) };
    const isFull = await connection.use(async (client) => {
      for await (const record of recordsOf(client.readAll(options))) {
        read += 1;
        const sequence = sequenceOf(record);
        saw(sequence);
        if (direction === 'forwards' ? sequence <= after : sequence >= after) continue;
        const row = mayMatch(filter, record) ? fromClientRecord(record) : undefined;
        if (!collector.add(sequence, row)) return true;
      }
      return false;
    }, query.signal);
    const page = collector.page(isFull ? 'full' : read < maxCount ? 'end' : 'cut');
    // An old explicit transaction has more events than were read.
    const isStuck = !page.end && page.considered === after;
    return isStuck ? readPage({ ...query, maxCount: maxCount * 2 }) : page;
  }

  /** The event at a position. Waits for a node of the cluster that has not received it yet. */
  async function rowAt(
    sequence: number,
    signal: AbortSignal | undefined,
  ): Promise<TailRow | undefined> {
    const at = { direction: 'forwards', fromPosition: positionOf(sequence, 'forwards') } as const;
    for (let attempt = 1; attempt <= lagging.attemptsMax; attempt += 1) {
      const row = await firstOf({ ...at, maxCount: 1 }, () => true, signal);
      if (row !== undefined) return row.sequence === sequence ? row : undefined;
      await systemClock.sleep(lagging.waitMs, signal);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'the server is behind a known position');
  }

  /** The first record of a read of all events that matches. */
  function firstOf(
    options: AllOptions,
    isMatch: (record: ClientRecord) => boolean,
    signal?: AbortSignal,
  ): Promise<TailRow | undefined> {
    return connection.use(async (client) => {
      for await (const record of recordsOf(client.readAll(options))) {
        if (isMatch(record)) return fromClientRecord(record);
      }
      return undefined;
    }, signal);
  }

  async function head(): Promise<number> {
    const last = await firstOf({ ...backwards, maxCount: 1 }, () => true);
    saw(last?.sequence ?? 0);
    return last?.sequence ?? 0;
  }

  /** Reads backwards: positions cannot be bisected, because only those of records can be read. */
  async function positionBefore(atMs: number): Promise<number> {
    return (await firstOf(backwards, (record) => recordedAtMs(record) < atMs))?.sequence ?? 0;
  }

  const findAll: KurrentdbReader['findAll'] = async (stream, eventIds, after) => {
    const ids = eventIds.map(eventUuid);
    const missing = new Set(ids);
    let last: TailRow | undefined;
    let searched = 0;
    await visit({ ...newestFirst, stream, limit: recent.max, fromLeader: true }, (row) => {
      const id = eventUuid(row.eventId);
      if (missing.delete(id) && id === ids.at(-1)) last = row;
      searched += 1;
      return missing.size === 0 || (row.sequence <= after && searched >= recent.min);
    });
    return missing.size === 0 ? last : undefined;
  };

  /** Searches the stream backwards, then all events, because the server has no index of ids. */
  async function findEvent(stream: string, eventId: string): Promise<TailRow | undefined> {
    const id = eventUuid(eventId);
    let found: TailRow | undefined;
    let oldest = -1;
    await visit({ ...newestFirst, stream }, (row) => {
      oldest = row.revision;
      if (eventUuid(row.eventId) === id) found = row;
      return found !== undefined;
    });
    if (found !== undefined || oldest === 0) return found;
    if (oldest === -1 && (await hiddenRevision(stream)) === -1) return undefined;
    // Events hidden by retention remain among all events until the server scavenges.
    const filter = onStream({ prefixes: [stream] });
    const isMatch = (record: ClientRecord): boolean =>
      record.id === id && record.streamId === stream;
    return firstOf({ ...backwards, filter }, isMatch);
  }

  async function newest(stream: string): Promise<StoredRow | undefined> {
    return (await edge(stream, { ...newestFirst, fromLeader: true })).rows[0];
  }

  async function streamState(stream: string): Promise<StreamState | undefined> {
    const [ofMetadata, ofStream] = await Promise.all([
      edge(metadataStream(stream), newestFirst),
      edge(stream, newestFirst),
    ]);
    if (ofStream.state?.tombstoned === true) return tombstone;
    const [metadata] = ofMetadata.rows;
    const [last] = ofStream.rows;
    const revision = last?.revision ?? (await hiddenRevision(stream));
    if (revision === 'tombstone') return tombstone;
    if (revision === -1 && metadata === undefined) return undefined;
    const payload: unknown = metadata === undefined ? undefined : JSON.parse(metadata.payload);
    const { truncateBefore = 0, maxCount, maxAgeSeconds } = fromMetadataPayload(payload);
    // An append restored the deleted stream; not every server records that in the metadata.
    const isRestored = truncateBefore === softDeleted && last !== undefined;
    const [first = last] = isRestored ? (await edge(stream, oldestFirst)).rows : [];
    return {
      revision,
      truncateBefore: isRestored ? (first?.revision ?? 0) : truncateBefore,
      maxCount,
      maxAgeSeconds,
      tombstoned: false,
    };
  }

  /**
   * Reads the revision of a stream without visible events. A read reports such a stream as missing, so the revision
   * comes from the rejection of an append that cannot succeed.
   */
  async function hiddenRevision(stream: string): Promise<number | 'tombstone'> {
    const event = { eventId: stream, type: '$probe', tenant: '', payload: 'null', meta: '{}' };
    const options = { streamState: BigInt(Number.MAX_SAFE_INTEGER - 1) };
    try {
      await connection.use((client) =>
        client.appendToStream(stream, toClientEvent(stream, event), options),
      );
      return -1;
    } catch (error) {
      const rejection = rejectionOf(error);
      if (rejection === undefined) throw error;
      return rejection.kind === 'deleted' ? 'tombstone' : rejection.actual;
    }
  }

  return {
    get highest() {
      return highest;
    },
    saw,
    readStream,
    readAll,
    findEvent,
    findAll,
    newest,
    head,
    positionBefore,
    streamState,
    hiddenRevision,
  };
}

interface StreamVisit extends Pick<StreamQuery, 'stream' | 'direction' | 'from' | 'signal'> {
  readonly limit: number;
  readonly fromLeader?: boolean;
}

interface PageQuery extends AllQuery, Partial<PushedDown> {
  readonly maxCount?: number;
}

type AllOptions = NonNullable<Parameters<Client['readAll']>[0]>;

/** Links are not resolved; a link without a record is skipped. */
async function* recordsOf(
  reading: AsyncIterable<{ readonly event?: unknown }>,
): AsyncGenerator<ClientRecord, void, undefined> {
  for await (const { event } of reading) {
    if (event !== undefined) yield event as ClientRecord;
  }
}

/** The server's position has two numbers; a Millrace position is one number. */
function positionOf(
  sequence: number,
  direction: 'forwards' | 'backwards',
): 'start' | 'end' | { readonly commit: bigint; readonly prepare: bigint } {
  if (sequence === 0 && direction === 'forwards') return 'start';
  if (sequence === Number.MAX_SAFE_INTEGER) return 'end';
  return { commit: BigInt(sequence), prepare: BigInt(sequence) };
}
