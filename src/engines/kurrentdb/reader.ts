// Reads pages of a stream and of all events, single events by id, and stream states.

import type { StreamState } from '../../store/expected-revision.ts';
import { softDeleted } from '../../store/expected-revision.ts';
import { createPageMeter, pageLimits, type PageBound } from '../../store/page-bound.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type { AllPage, AllQuery, StreamPage, StreamQuery } from '../../store/store-engine.ts';
import { fromMetadataPayload, metadataStream } from '../../store/stream-metadata.ts';
import { eventUuid, fromClientRecord, toClientEvent, type ReadRecord } from './event-record.ts';
import type { Client, ClientRecord, ClientSubscription } from './client.ts';
import type { KurrentdbConnection } from './connection.ts';
import { actualRevisionOf, isKind, unavailable } from './errors.ts';
import { isWanted, pushDown, type ServerFilter } from './push-down.ts';

export interface ReaderOptions {
  readonly names: 'strict' | 'open';
  /** The position up to which the listener has seen all events; undefined without a listener. */
  readonly seen: () => number | undefined;
}

export interface KurrentdbReader {
  readStream(query: StreamQuery): Promise<StreamPage>;
  readAll(query: AllQuery): Promise<AllPage>;
  findEvent(stream: string, eventId: string): Promise<StoredRow | undefined>;
  head(): Promise<number>;
  streamState(stream: string): Promise<StreamState | undefined>;
  /** Reads at most `count` visible records. */
  recordsFrom(stream: string, revision: number, count: number): Promise<readonly ReadRecord[]>;
  /** Reads the event at exactly this position, even if retention hides it. */
  eventAt(sequence: number, signal?: AbortSignal): Promise<ReadRecord | undefined>;
}

/** The smallest page if the server evaluates only a part of the filter. */
const pageMin = 500;
/** At more than this distance from the head, a filtered read scans in stages. */
const scanFrom = 5_000;
/** The page size of a search for one event. */
const searchPage = 1_000;

const tombstone: StreamState = { revision: -1, truncateBefore: 0, tombstoned: true };

export function createKurrentdbReader(
  connection: KurrentdbConnection,
  { names, seen }: ReaderOptions,
): KurrentdbReader {
  async function readStream(query: StreamQuery): Promise<StreamPage> {
    const read = await recordsOfStream(query);
    if (read === 'tombstone') return { state: tombstone, rows: [], end: true };
    return { state: undefined, rows: read.records.map(({ row }) => row), end: read.end };
  }

  async function recordsOfStream(
    query: Omit<StreamQuery, 'nowMs'> & { readonly requiresLeader?: boolean },
  ): Promise<{ readonly records: readonly ReadRecord[]; readonly end: boolean } | 'tombstone'> {
    const { stream, direction, from, limit, requiresLeader = false, signal } = query;
    const fromRevision = from === Number.MAX_SAFE_INTEGER ? 'end' : BigInt(from);
    try {
      return await connection.use(async (client) => {
        const records: ReadRecord[] = [];
        const isLast = createPageMeter(query);
        const options = { direction, fromRevision, maxCount: limit, requiresLeader } as const;
        for await (const record of recordsOf(client.readStream(stream, options))) {
          const read = fromClientRecord(record);
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
    const { direction, after, limit, filter, signal } = query;
    const forwards = direction === 'forwards';
    if (!forwards && after === 0) return { rows: [], considered: 0, end: true };
    const { server, isExact } = pushDown(filter, names);
    // Read one event more than the limit: a forward read starts at the last event that was read.
    const maxCount = isExact ? limit + 1 : Math.max(limit + 1, pageMin);
    // Query the position before the page: an event in between is found later, never skipped.
    const floor = forwards ? (seen() ?? (await head())) : 0;
    if (server !== undefined && !isExact && floor - after > scanFrom) {
      const scanned = await scan({ ...query, server, floor });
      if (scanned !== undefined) return scanned;
    }
    return connection.request(async (client) => {
      const rows: StoredRow[] = [];
      // One event more than the limit tells whether there is another page.
      const isFull = createPageMeter({ ...query, limit: limit + 1 });
      let scanned = 0;
      let considered = after;
      for await (const record of allRecords(client, {
        direction,
        fromPosition: positionOf(after, direction),
        maxCount,
        ...(server === undefined ? {} : { filter: server }),
      })) {
        scanned += 1;
        const read = fromClientRecord(record);
        const { sequence } = read.row;
        if (forwards ? sequence <= after : sequence >= after) continue;
        if (!isWanted(filter, read)) {
          considered = sequence;
          continue;
        }
        // The read returned one event more than the limit, so there is another page.
        if (rows.length === limit) {
          return { rows, considered: rows.at(-1)?.sequence ?? after, end: false };
        }
        rows.push(read.row);
        considered = sequence;
        if (isFull(read.row)) return { rows, considered, end: false };
      }
      const end = scanned < maxCount;
      return { rows, considered: end && forwards ? Math.max(considered, floor) : considered, end };
    }, signal);
  }

  /** Returns undefined if the server does not report its progress. */
  async function scan(
    query: AllQuery & { readonly server: ServerFilter; readonly floor: number },
  ): Promise<AllPage | undefined> {
    const { after, filter, server, floor, signal } = query;
    const fromPosition = positionOf(after, 'forwards');
    const { records, stop } = await connection.request(
      (client) => scanAll(client, { ...query, fromPosition, filter: server }),
      signal,
    );
    const read = records.map(fromClientRecord);
    const last = read.at(-1)?.row.sequence ?? after;
    if (stop === 'silent' && last === after) return undefined;
    const rows = read.filter((record) => isWanted(filter, record)).map(({ row }) => row);
    if (stop === 'caughtUp') return { rows, considered: Math.max(last, floor), end: true };
    // Events after the checkpoint may have arrived with it.
    const considered = typeof stop === 'object' ? Math.max(last, stop.considered) : last;
    return { rows, considered, end: false };
  }

  async function head(): Promise<number> {
    return connection.request(async (client) => {
      for await (const record of allRecords(client, {
        direction: 'backwards',
        fromPosition: 'end',
        maxCount: 1,
      })) {
        return fromClientRecord(record).row.sequence;
      }
      return 0;
    });
  }

  async function eventAt(sequence: number, signal?: AbortSignal): Promise<ReadRecord | undefined> {
    return connection.request(async (client) => {
      const fromPosition = positionOf(sequence, 'forwards');
      // A follower may not have the event yet.
      const requiresLeader = true;
      const at = { direction: 'forwards', fromPosition, maxCount: 1, requiresLeader } as const;
      for await (const record of allRecords(client, at)) {
        const read = fromClientRecord(record);
        return read.row.sequence === sequence ? read : undefined;
      }
      return undefined;
    }, signal);
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

  return { readStream, readAll, findEvent, head, streamState, recordsFrom, eventAt };
}

interface ScanOptions extends PageBound {
  readonly fromPosition: 'start' | 'end' | { readonly commit: bigint; readonly prepare: bigint };
  readonly filter: ServerFilter;
}

interface Scanned {
  readonly records: readonly ClientRecord[];
  /**
   * Why the scan stopped: at the limit, at a checkpoint, at the head, or because the server sent nothing. In the last
   * case, the caller uses a read instead.
   */
  readonly stop: 'limit' | { readonly considered: number } | 'caughtUp' | 'silent';
}

/** The number of scanned events between two checkpoints. */
const checkpointEvents = { maxSearchWindow: 500, checkpointInterval: 10 } as const;

/** Servers before 23.10 do not report that the subscription has caught up. */
const silenceMsMax = 5_000;

/**
 * Scans many events with a filter that rarely matches. A read responds only when it has found enough events, which may
 * take long. A subscription reports its progress, so a scan can continue where it stopped.
 */
async function scanAll(client: Client, options: ScanOptions): Promise<Scanned> {
  const { fromPosition, filter } = options;
  const records: ClientRecord[] = [];
  const isLast = createPageMeter(options);
  let isFull = false;
  const stopped = Promise.withResolvers<Scanned['stop']>();
  const opened: ClientSubscription = client.subscribeToAll({
    fromPosition,
    filter: {
      ...filter,
      ...checkpointEvents,
      checkpointReached: (_of, { commit }) => stopped.resolve({ considered: Number(commit) }),
    },
  });
  const timer = setTimeout(() => stopped.resolve('silent'), silenceMsMax);
  opened.on('data', ({ event }) => {
    if (event === undefined || isFull) return;
    records.push(event);
    timer.refresh();
    isFull = isLast(fromClientRecord(event).row);
    if (isFull) stopped.resolve('limit');
  });
  opened.on('caughtUp', () => stopped.resolve('caughtUp'));
  opened.on('error', (error) => stopped.reject(error));
  try {
    const stop = await stopped.promise;
    // Events received before the stop may still be buffered in the Readable.
    while (!isFull && opened.readableLength > 0) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    return { records, stop: isFull ? 'limit' : stop };
  } finally {
    clearTimeout(timer);
    await opened.unsubscribe();
  }
}

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
export function positionOf(
  sequence: number,
  direction: 'forwards' | 'backwards',
): 'start' | 'end' | { readonly commit: bigint; readonly prepare: bigint } {
  if (sequence === 0 && direction === 'forwards') return 'start';
  if (sequence === Number.MAX_SAFE_INTEGER) return 'end';
  return { commit: BigInt(sequence), prepare: BigInt(sequence) };
}
