// Reads pages of a stream and of all events, single events by id, and stream states.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { TailRow } from '../../store/append-tail.ts';
import type { StreamState } from '../../store/expected-revision.ts';
import { softDeleted } from '../../store/expected-revision.ts';
import { createPageMeter, pageLimits } from '../../store/page-bound.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type {
  AllPage,
  AllQuery,
  RowFilter,
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
import { actualRevisionOf, isKind, unavailable } from './errors.ts';
import { isWanted, mayMatch, pushDown, type PushedDown } from './push-down.ts';
import { createPageCollector, type RecordsPage } from './records-page.ts';

export interface ReaderOptions {
  readonly names: 'strict' | 'open';
  readonly clock: Clock;
}

export interface KurrentdbReader {
  /** The highest position that was read or acknowledged. */
  readonly highest: number;
  saw(sequence: number): void;
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  /** All events after a position. */
  readonly readAfter: (after: number) => Promise<RecordsPage>;
  findEvent(stream: string, eventId: string): Promise<TailRow | undefined>;
  /** The last of these events, if all of them are among the newest events of the stream. */
  findAll(stream: string, search: RecentSearch): Promise<TailRow | undefined>;
  /** The last visible event; from the leader, unless the URL prefers followers. */
  newest(stream: string): Promise<StoredRow | undefined>;
  head(): Promise<number>;
  positionBefore(atMs: number): Promise<number>;
  streamState(stream: string): Promise<StreamState | undefined>;
  /** The last revision of a stream that cannot be read. */
  hiddenRevision(stream: string): Promise<number | 'tombstone'>;
}

interface RecentSearch {
  readonly eventIds: readonly string[];
  /** Events up to this revision are not searched. */
  readonly after: number;
}

/** The records that one read requests from the server. */
const readMax = 500;
/** A search among the newest events reads at least so many, because an append may repeat parts of earlier ones. */
const recent = { min: 1_000, max: 10_000 } as const;
/** How long a read waits for a node that is behind a position that the store has given out. */
const lagging = { waitMs: 50, attemptsMax: 100 } as const;

const newestFirst = { direction: 'backwards', from: Number.MAX_SAFE_INTEGER } as const;
const backwards = { direction: 'backwards', fromPosition: 'end' } as const;
const tombstone: StreamState = { revision: -1, truncateBefore: 0, tombstoned: true };

export function createKurrentdbReader(
  connection: KurrentdbConnection,
  { names, clock }: ReaderOptions,
): KurrentdbReader {
  let highest = 0;
  /** Where the server found no further match of a subscription: up to there, asking it again is a waste. */
  const noMatchUpTo = new WeakMap<RowFilter, number>();
  const saw = (sequence: number): void => {
    if (sequence > highest) highest = sequence;
  };

  /** Calls `isLast` with each visible event until it returns true. A missing stream has no events. */
  async function visit(
    {
      stream,
      direction,
      from,
      maxCount = Number.MAX_SAFE_INTEGER,
      fromLeader,
      signal,
    }: StreamVisit,
    isLast: (row: TailRow) => boolean,
  ): Promise<'stopped' | 'end' | 'tombstone'> {
    const fromRevision = from === Number.MAX_SAFE_INTEGER ? 'end' : BigInt(from);
    const options: StreamOptions = { direction, fromRevision, maxCount };
    try {
      return await connection.use(async (client) => {
        const reading =
          fromLeader === true
            ? fromLeaderFirst(client, stream, options)
            : client.readStream(stream, options);
        for await (const record of recordsOf(reading)) {
          const row = fromClientRecord(record);
          saw(row.sequence);
          if (isLast(row)) return 'stopped';
        }
        return 'end';
      }, signal);
    } catch (error) {
      if (isKind(error, 'stream-not-found')) return 'end';
      if (isKind(error, 'stream-deleted')) return 'tombstone';
      throw unavailable(error);
    }
  }

  async function readStream(query: PageOfStream): Promise<StreamPage> {
    const rows: TailRow[] = [];
    const isLast = createPageMeter(query);
    const visited = await visit({ ...query, maxCount: query.limit }, (row) => {
      rows.push(row);
      return isLast(row);
    });
    if (visited === 'tombstone') return { state: tombstone, rows: [], end: true };
    return { state: undefined, rows, end: visited === 'end' };
  }

  /** The first or the last visible event. */
  function edge(
    stream: string,
    direction: 'forwards' | 'backwards',
    fromLeader = false,
  ): Promise<StreamPage> {
    const from = direction === 'forwards' ? 0 : Number.MAX_SAFE_INTEGER;
    return readStream({ stream, direction, from, limit: 1, bytesMax: 1, fromLeader });
  }

  /**
   * The server filters the pages of bounded reads and of subscriptions that catch up. Their position is that of the last
   * record that the server returned.
   */
  async function readAll(query: AllQuery): Promise<AllPage> {
    const { direction, after, filter, isInclusive = false, isLive, signal } = query;
    if (direction === 'backwards' && after === 0) return { rows: [], considered: 0, end: true };
    const at = isInclusive ? await rowAt(after, signal) : undefined;
    if (at !== undefined && isWanted(filter, at)) {
      return { rows: [at], considered: after, end: false };
    }
    const pushed = pushDown(filter, names);
    if (isLive === undefined) return readPage({ ...query, ...pushed });
    if (isLive || pushed.server === undefined || after < (noMatchUpTo.get(filter) ?? 0)) {
      return readPage(query);
    }
    const matches = await readPage({ ...query, ...pushed });
    if (matches.considered > after) return { ...matches, end: false };
    // The server does not say how far it searched, so the rest is read without its filter.
    noMatchUpTo.set(filter, await head());
    return readPage(query);
  }

  function readAfter(after: number): Promise<RecordsPage> {
    const bound = { limit: readMax, bytesMax: pageLimits.bytesDefault };
    return readPage({ direction: 'forwards', after, ...bound });
  }

  /** Reads one page. Its position is that of a record which this read returned. */
  async function readPage(query: PageQuery): Promise<RecordsPage> {
    const { direction, after, limit, filter, server, isExact = false } = query;
    const { maxCount = Math.max(limit + 1, isExact ? 0 : readMax) } = query;
    const collector = createPageCollector(query);
    let read = 0;
    let isWithinTransaction = false;
    const fromPosition = positionOf(after, direction);
    const options = { direction, fromPosition, maxCount, ...(server && { filter: server }) };
    const isFull = await connection.request(async (client) => {
      for await (const record of recordsOf(client.readAll(options))) {
        read += 1;
        const sequence = sequenceOf(record);
        saw(sequence);
        // A forward read starts with the record at its position, if that still exists.
        if (direction === 'forwards' ? sequence <= after : sequence >= after) continue;
        isWithinTransaction = record.position?.prepare !== record.position?.commit;
        const isPossible = filter === undefined || mayMatch(filter, record);
        if (!collector.add(sequence, isPossible ? fromClientRecord(record) : undefined))
          return true;
      }
      return false;
    }, query.signal);
    if (isFull || read < maxCount || !isWithinTransaction) {
      return collector.page(!isFull && read < maxCount);
    }
    const page = collector.withoutLast();
    return page.considered === after ? readPage({ ...query, maxCount: maxCount * 2 }) : page;
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
      await clock.sleep(lagging.waitMs, signal);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'the server is behind a known position');
  }

  /** The first record of a read of all events that matches. */
  function firstOf(
    options: AllOptions,
    isMatch: (record: ClientRecord) => boolean,
    signal?: AbortSignal,
  ): Promise<TailRow | undefined> {
    return connection.request(async (client) => {
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

  async function findAll(
    stream: string,
    { eventIds, after }: RecentSearch,
  ): Promise<TailRow | undefined> {
    const ids = eventIds.map(eventUuid);
    const missing = new Set(ids);
    let last: TailRow | undefined;
    let searched = 0;
    await visit({ ...newestFirst, stream, maxCount: recent.max, fromLeader: true }, (row) => {
      const id = eventUuid(row.eventId);
      if (missing.delete(id) && id === ids.at(-1)) last = row;
      searched += 1;
      return missing.size === 0 || (row.revision <= after + 1 && searched >= recent.min);
    });
    return missing.size === 0 ? last : undefined;
  }

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
    const state = await streamState(stream);
    if (state === undefined || (state.revision === -1 && !state.tombstoned)) return undefined;
    // Events hidden by retention remain among all events until the server scavenges.
    return firstOf(
      {
        ...backwards,
        filter: { filterOn: 'streamName', prefixes: [stream], checkpointInterval: 1 },
      },
      (record) => record.id === id && record.streamId === stream,
    );
  }

  async function newest(stream: string): Promise<StoredRow | undefined> {
    return (await edge(stream, 'backwards', true)).rows[0];
  }

  async function streamState(stream: string): Promise<StreamState | undefined> {
    const [ofMetadata, ofStream] = await Promise.all([
      edge(metadataStream(stream), 'backwards'),
      edge(stream, 'backwards'),
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
    const [first = last] = isRestored ? (await edge(stream, 'forwards')).rows : [];
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
    try {
      await connection.use((client) =>
        client.appendToStream(stream, toClientEvent(stream, event), {
          streamState: BigInt(Number.MAX_SAFE_INTEGER - 1),
        }),
      );
    } catch (error) {
      if (isKind(error, 'wrong-expected-version')) return actualRevisionOf(error);
      if (isKind(error, 'stream-deleted', 'stream-tombstoned')) return 'tombstone';
      throw unavailable(error);
    }
    return -1;
  }

  return {
    get highest() {
      return highest;
    },
    saw,
    readStream,
    readAll,
    readAfter,
    findEvent,
    findAll,
    newest,
    head,
    positionBefore,
    streamState,
    hiddenRevision,
  };
}

type PageOfStream = Omit<StreamQuery, 'nowMs'> & Pick<StreamVisit, 'fromLeader'>;

interface StreamVisit extends Pick<StreamQuery, 'stream' | 'direction' | 'from' | 'signal'> {
  readonly maxCount?: number;
  readonly fromLeader?: boolean;
}

interface PageQuery extends Omit<AllQuery, 'filter'>, Partial<PushedDown> {
  readonly filter?: AllQuery['filter'];
  readonly maxCount?: number;
}

type AllOptions = NonNullable<Parameters<Client['readAll']>[0]>;
type StreamOptions = NonNullable<Parameters<Client['readStream']>[1]>;

/** A client that prefers followers cannot ask the leader; a follower may lack the newest events. */
async function* fromLeaderFirst(
  client: Client,
  stream: string,
  options: StreamOptions,
): AsyncGenerator<{ readonly event?: unknown }, void, undefined> {
  try {
    yield* client.readStream(stream, { ...options, requiresLeader: true });
  } catch (error) {
    if (!isKind(error, 'not-leader')) throw error;
    yield* client.readStream(stream, options);
  }
}

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
