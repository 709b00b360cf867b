// Reads pages of a stream and of all events, single events by id, and stream states.

import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { StreamState } from '../../store/expected-revision.ts';
import { softDeleted } from '../../store/expected-revision.ts';
import { createPageMeter, pageLimits } from '../../store/page-bound.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type { AllPage, AllQuery, StreamPage, StreamQuery } from '../../store/store-engine.ts';
import { fromMetadataPayload, metadataStream } from '../../store/stream-metadata.ts';
import {
  eventUuid,
  fromClientRecord,
  sequenceOf,
  toClientEvent,
  type ReadRecord,
} from './event-record.ts';
import type { Client, ClientRecord } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { actualRevisionOf, isKind, unavailable } from './errors.ts';
import { isWanted, mayMatch, pushDown, type ServerFilter } from './push-down.ts';
import { createPageCollector, toAllPage, type RecordsPage } from './records-page.ts';

export interface ReaderOptions {
  readonly names: 'strict' | 'open';
  readonly clock: Clock;
}

export interface KurrentdbReader {
  /** The highest position that was read. */
  readonly highest: number;
  readStream(query: StreamQuery): Promise<StreamPage>;
  /** A page of a subscription considers all events; other pages are filtered by the server. */
  readAll(query: AllQuery): Promise<AllPage>;
  /** All events after a position. */
  readAfter(after: number): Promise<RecordsPage>;
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
  /** The events with these ids among the newest events of a stream; undefined unless all are found. */
  findRecent(stream: string, search: RecentSearch): Promise<readonly StoredRow[] | undefined>;
  head(): Promise<number>;
  positionBefore(atMs: number): Promise<number>;
  streamState(stream: string): Promise<StreamState | undefined>;
  /** The revision of the last visible event. */
  lastRevision(stream: string): Promise<number | undefined>;
  /** The last revision of a stream that cannot be read. */
  hiddenRevision(stream: string): Promise<number | 'tombstone'>;
  /** Reads at most `count` visible records. */
  recordsFrom(stream: string, revision: number, count: number): Promise<readonly ReadRecord[]>;
}

interface RecentSearch {
  readonly eventIds: readonly string[];
  /** Events up to this revision are not searched. */
  readonly after: number;
}

/** The records that one read requests from the server. */
const readMax = 500;
/** The page size of a search for one event. */
const searchPage = 1_000;
/** The events that a search among the newest ones reads at most. */
const recentMax = 10_000;
/** How long a read waits for a node that is behind a position that the store has given out. */
const lagging = { waitMs: 50, attemptsMax: 100 } as const;

const tombstone: StreamState = { revision: -1, truncateBefore: 0, tombstoned: true };

export function createKurrentdbReader(
  connection: KurrentdbConnection,
  { names, clock }: ReaderOptions,
): KurrentdbReader {
  let highest = 0;
  const saw = (sequence: number): number => {
    if (sequence > highest) highest = sequence;
    return sequence;
  };

  async function readStream(query: StreamQuery): Promise<StreamPage> {
    const read = await recordsOfStream(query);
    if (read === 'tombstone') return { state: tombstone, rows: [], end: true };
    return { state: undefined, rows: read.records.map(({ row }) => row), end: read.end };
  }

  async function recordsOfStream(
    query: Omit<StreamQuery, 'nowMs'> & { readonly requiresLeader?: boolean },
  ): Promise<StreamRecords> {
    const { stream, direction, from, limit, requiresLeader = false, signal } = query;
    const fromRevision = from === Number.MAX_SAFE_INTEGER ? 'end' : BigInt(from);
    try {
      return await connection.use(async (client) => {
        const records: ReadRecord[] = [];
        const isLast = createPageMeter(query);
        const options = { direction, fromRevision, maxCount: limit, requiresLeader } as const;
        for await (const record of recordsOf(client.readStream(stream, options))) {
          const read = fromClientRecord(record);
          saw(read.row.sequence);
          records.push(read);
          if (isLast(read.row)) return { records, end: false };
        }
        return { records, end: true };
      }, signal);
    } catch (error) {
      if (isKind(error, 'stream-not-found')) return { records: [], end: true };
      if (isKind(error, 'stream-deleted')) return 'tombstone';
      throw unavailable(error);
    }
  }

  async function recordsFrom(
    stream: string,
    revision: number,
    count: number,
  ): Promise<readonly ReadRecord[]> {
    const from = Math.max(0, revision);
    const bytesMax = Number.POSITIVE_INFINITY;
    const page = { stream, direction: 'forwards', from, limit: count, bytesMax } as const;
    const read = await recordsOfStream({ ...page, requiresLeader: true });
    return read === 'tombstone' ? [] : read.records;
  }

  async function readAll(query: AllQuery): Promise<AllPage> {
    const { direction, after, filter, isInclusive = false, signal } = query;
    if (direction === 'backwards' && after === 0) return { rows: [], considered: 0, end: true };
    // The server answers a filtered read late if few events match, and does not say how far it came. A subscription
    // needs to know that, so it considers every event itself.
    const pushed = query.isLive === undefined ? pushDown(filter, names) : undefined;
    return connection.request(async (client) => {
      const at = isInclusive ? await recordAt(client, after, signal) : undefined;
      if (at !== undefined && isWanted(filter, at)) {
        return { rows: [at.row], considered: after, end: false };
      }
      return toAllPage(await readRecords(client, { ...query, ...pushed }));
    }, signal);
  }

  function readAfter(after: number): Promise<RecordsPage> {
    const bound = { limit: readMax, bytesMax: pageLimits.bytesDefault };
    return connection.request((client) =>
      readRecords(client, { direction: 'forwards', after, ...bound }),
    );
  }

  /** Reads one page. Its position is that of a record which this read returned. */
  async function readRecords(client: Client, query: RecordsQuery): Promise<RecordsPage> {
    const { direction, after, limit, filter, server, isExact = false } = query;
    const { maxCount = Math.max(limit + 1, isExact ? 0 : readMax) } = query;
    const page = createPageCollector(query);
    let read = 0;
    let isWithinTransaction = false;
    for await (const record of allRecords(client, {
      direction,
      fromPosition: positionOf(after, direction),
      maxCount,
      ...(server === undefined ? {} : { filter: server }),
    })) {
      read += 1;
      const sequence = saw(sequenceOf(record));
      // A forward read starts with the record at its position, if that still exists.
      if (direction === 'forwards' ? sequence <= after : sequence >= after) continue;
      isWithinTransaction = record.position?.prepare !== record.position?.commit;
      const isAdded =
        filter === undefined || mayMatch(filter, record)
          ? page.add(fromClientRecord(record))
          : page.pass(sequence);
      if (!isAdded) return page.full();
    }
    if (read < maxCount) return page.whole();
    if (!isWithinTransaction) return page.full();
    const before = page.withoutLast();
    if (before.considered !== after) return before;
    return readRecords(client, { ...query, maxCount: maxCount * 2 });
  }

  /** The record at a position. Waits for a node of the cluster that has not received it yet. */
  async function recordAt(
    client: Client,
    sequence: number,
    signal: AbortSignal | undefined,
  ): Promise<ReadRecord | undefined> {
    for (let attempt = 1; attempt <= lagging.attemptsMax; attempt += 1) {
      const fromPosition = positionOf(sequence, 'forwards');
      const at = { direction: 'forwards', fromPosition, maxCount: 1 } as const;
      for await (const record of allRecords(client, at)) {
        return sequenceOf(record) === sequence ? fromClientRecord(record) : undefined;
      }
      await clock.sleep(lagging.waitMs, signal);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'the server is behind a known position');
  }

  async function head(): Promise<number> {
    return connection.request(async (client) => {
      for await (const record of allRecords(client, {
        direction: 'backwards',
        fromPosition: 'end',
        maxCount: 1,
      })) {
        return saw(sequenceOf(record));
      }
      return 0;
    });
  }

  /** Reads backwards: positions cannot be bisected, because only those of records can be read. */
  async function positionBefore(atMs: number): Promise<number> {
    return connection.request(async (client) => {
      for await (const record of allRecords(client, {
        direction: 'backwards',
        fromPosition: 'end',
        maxCount: Number.MAX_SAFE_INTEGER,
      })) {
        if (fromClientRecord(record).row.recordedAtMs < atMs) return sequenceOf(record);
      }
      return 0;
    });
  }

  async function findRecent(
    stream: string,
    { eventIds, after }: RecentSearch,
  ): Promise<readonly StoredRow[] | undefined> {
    const found = new Map<string, StoredRow>();
    const ids = eventIds.map(eventUuid);
    let from = Number.MAX_SAFE_INTEGER;
    for (let searched = 0; searched < recentMax; searched += searchPage) {
      const query = { stream, direction: 'backwards', from, limit: searchPage } as const;
      const page = await newestOf({ ...query, bytesMax: pageLimits.bytesDefault });
      if (page === 'tombstone') return undefined;
      for (const { row } of page.records) found.set(eventUuid(row.eventId), row);
      const rows = ids.flatMap((id) => found.get(id) ?? []);
      if (rows.length === ids.length) return rows;
      const last = page.records.at(-1)?.row.revision ?? 0;
      if (page.end || last <= after + 1) return undefined;
      from = last - 1;
    }
    return undefined;
  }

  /** Asks the leader; a follower that must be read may lack the newest events. */
  async function newestOf(query: Omit<StreamQuery, 'nowMs'>): Promise<StreamRecords> {
    try {
      return await recordsOfStream({ ...query, requiresLeader: true });
    } catch (error) {
      if (!isKind((error as Error).cause, 'not-leader')) throw error;
      return recordsOfStream(query);
    }
  }

  /** Searches the stream backwards, then all events, because the server has no index of ids. */
  async function findEvent(stream: string, eventId: string): Promise<StoredRow | undefined> {
    const id = eventUuid(eventId);
    let from = Number.MAX_SAFE_INTEGER;
    let isWhole = false;
    for (;;) {
      const page = await readStream({
        stream,
        direction: 'backwards',
        from,
        limit: searchPage,
        bytesMax: pageLimits.bytesDefault,
        nowMs: 0,
      });
      const found = page.rows.find((row) => eventUuid(row.eventId) === id);
      if (found !== undefined) return found;
      const last = page.rows.at(-1)?.revision;
      isWhole = last === 0;
      if (last === undefined || last === 0 || page.end) break;
      from = last - 1;
    }
    return isWhole ? undefined : findHidden(stream, id);
  }

  /** Events hidden by retention remain among all events until the server scavenges. */
  async function findHidden(stream: string, id: string): Promise<StoredRow | undefined> {
    const state = await streamState(stream);
    if (state === undefined || (state.revision === -1 && !state.tombstoned)) return undefined;
    return connection.request(async (client) => {
      for await (const record of allRecords(client, {
        direction: 'backwards',
        fromPosition: 'end',
        maxCount: Number.MAX_SAFE_INTEGER,
        filter: { filterOn: 'streamName', prefixes: [stream], checkpointInterval: 1 },
      })) {
        if (record.id === id && record.streamId === stream) return fromClientRecord(record).row;
      }
      return undefined;
    });
  }

  async function streamState(stream: string): Promise<StreamState | undefined> {
    const from = Number.MAX_SAFE_INTEGER;
    const latest = { from, limit: 1, bytesMax: 1, nowMs: 0 };
    const [ofMetadata, ofStream] = await Promise.all([
      readStream({ ...latest, stream: metadataStream(stream), direction: 'backwards' }),
      readStream({ ...latest, stream, direction: 'backwards' }),
    ]);
    if (ofStream.state?.tombstoned === true) return tombstone;
    const [metadata] = ofMetadata.rows;
    const [last] = ofStream.rows;
    const revision = last?.revision ?? (await hiddenRevision(stream));
    if (revision === 'tombstone') return tombstone;
    if (revision === -1 && metadata === undefined) return undefined;
    const payload: unknown = metadata === undefined ? undefined : JSON.parse(metadata.payload);
    const { truncateBefore = 0, maxCount, maxAgeSeconds } = fromMetadataPayload(payload);
    return {
      revision,
      // An append restored the deleted stream; not every server records that in the metadata.
      truncateBefore:
        truncateBefore === softDeleted && last !== undefined
          ? await firstRevision(stream, last.revision)
          : truncateBefore,
      maxCount,
      maxAgeSeconds,
      tombstoned: false,
    };
  }

  async function lastRevision(stream: string): Promise<number | undefined> {
    const from = Number.MAX_SAFE_INTEGER;
    const latest = { from, limit: 1, bytesMax: 1, nowMs: 0 };
    return (await readStream({ ...latest, stream, direction: 'backwards' })).rows[0]?.revision;
  }

  async function firstRevision(stream: string, fallback: number): Promise<number> {
    const first = {
      stream,
      direction: 'forwards',
      from: 0,
      limit: 1,
      bytesMax: 1,
      nowMs: 0,
    } as const;
    return (await readStream(first)).rows[0]?.revision ?? fallback;
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
    readStream,
    readAll,
    readAfter,
    findEvent,
    findRecent,
    head,
    positionBefore,
    streamState,
    lastRevision,
    hiddenRevision,
    recordsFrom,
  };
}

interface RecordsQuery extends Pick<AllQuery, 'direction' | 'after' | 'limit' | 'bytesMax'> {
  readonly filter?: AllQuery['filter'] | undefined;
  readonly server?: ServerFilter | undefined;
  readonly isExact?: boolean | undefined;
  readonly maxCount?: number | undefined;
}

type StreamRecords =
  | { readonly records: readonly ReadRecord[]; readonly end: boolean }
  | 'tombstone';

type AllOptions = NonNullable<Parameters<Client['readAll']>[0]>;

async function* allRecords(
  client: Client,
  options: AllOptions,
): AsyncGenerator<ClientRecord, void, undefined> {
  yield* recordsOf(client.readAll(options));
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
