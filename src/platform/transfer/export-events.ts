// Exports the events of a store as NDJSON, in order, up to the head at the start of the export.

import { compileFilter, type EventFilter } from '../../store/event-filter.ts';
import type { AllEventReader, EventStore } from '../../store/event-store.ts';
import { positionDistance, startPosition, type Position } from '../../store/position.ts';
import { asWritten, type RecordedEvent } from '../../store/recorded-event.ts';
import { categoryOf } from '../../store/stream-category.ts';
import { metadataType, streamOfMetadata, tombstoneType } from '../../store/stream-metadata.ts';
import { checkpointLine, eventLine } from './export-format.ts';

export interface ExportOptions {
  /** Exclusive: the checkpoint of an earlier export. Default: before the first event. */
  readonly after?: Position | undefined;
  /** Metadata and tombstones are included for whole streams, so not with a filter by type. */
  readonly filter?: EventFilter | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called after each piece of the export. */
  readonly onProgress?: ((progress: ExportProgress) => void) | undefined;
}

export interface ExportProgress {
  readonly events: number;
  /** All events up to here are exported. */
  readonly position: Position;
  /** The exported part of the store, from 0 to 1. */
  readonly done: number;
}

const systemTypes: readonly string[] = [metadataType, tombstoneType];

export const exportLimits = { pageEvents: 250, pieceChars: 262_144 } as const;

/**
 * The events of a store as NDJSON, in pieces of whole lines that end with a checkpoint. Memory use is one page and
 * one piece. Pieces are created on demand.
 *
 * @example
 * import { createWriteStream } from 'node:fs';
 * import { pipeline } from 'node:stream/promises';
 * import { createGzip } from 'node:zlib';
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { exportEvents } from 'millrace/platform';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * const pieces = exportEvents(db.store, { filter: { category: 'banking.currency.v1' } });
 * await pipeline(pieces, createGzip(), createWriteStream('currencies.ndjson.gz'));
 */
export async function* exportEvents(
  store: EventStore,
  options: ExportOptions = {},
): AsyncGenerator<string, void, undefined> {
  const { after = startPosition, onProgress } = options;
  const head = await store.head();
  const end = head > after ? head : after;
  let piece = '';
  let events = 0;
  let position = after;
  const report = (): void => onProgress?.({ events, position, done: share(after, position, end) });

  const proof = await proofTypes(store, options);
  const reading = eventsUpTo(store, end, { ...options, after, proof });
  for await (const event of reading) {
    piece += eventLine(asWritten(event));
    position = event.position;
    events += 1;
    if (piece.length < exportLimits.pieceChars) continue;
    yield piece;
    report();
    piece = '';
  }
  // The head may come from another node than the events.
  const read = reading.position();
  position = read < end ? read : end;
  yield piece + checkpointLine(position);
  report();
}

/**
 * An engine without event numbers stands at the last event that a read returned. The system events of an export may be
 * far apart, so their reader also reads the type of the last event: then it has seen everything before that event.
 */
async function proofTypes(
  store: EventStore,
  { filter, signal }: ExportOptions,
): Promise<readonly string[]> {
  if (store.capabilities.positionUnit !== 'bytes' || filter === undefined) return [];
  const last = await store.readAll({ direction: 'backwards', filter, limit: 1, signal }).toArray();
  return last.map(({ type }) => type);
}

interface Proof {
  readonly proof: readonly string[];
}

interface UpTo extends AsyncIterable<RecordedEvent> {
  /** Every event up to here was read. */
  position(): Position;
}

function eventsUpTo(
  store: EventStore,
  end: Position,
  { after, filter, signal, proof }: ExportOptions & { readonly after: Position } & Proof,
): UpTo {
  const readers: AllEventReader[] = [];
  const read = (wanted: EventFilter): AsyncIterable<RecordedEvent> => {
    const reader = store.readAll({
      after,
      filter: wanted,
      pageSize: exportLimits.pageEvents,
      signal,
    });
    readers.push(reader);
    return reader;
  };
  const events = select(read, { filter, proof });
  return {
    position: () => readers.map(({ position }) => position).toSorted()[0] ?? end,
    async *[Symbol.asyncIterator]() {
      for await (const event of events) {
        if (event.position > end) return;
        yield event;
      }
    },
  };
}

/** System events have neither category nor tenant: they are matched by the stream that they describe. */
function select(
  read: (filter: EventFilter) => AsyncIterable<RecordedEvent>,
  { filter = {}, proof }: Pick<ExportOptions, 'filter'> & Proof,
): AsyncIterable<RecordedEvent> {
  const { types, typePrefixes, typePattern, ...byStream } = filter;
  if (types !== undefined || typePrefixes !== undefined || typePattern !== undefined) {
    return read(filter);
  }
  if (Object.values(byStream).every((part) => part === undefined)) return read({ system: true });
  const isWanted = streamTest(filter);
  const system = read({ types: [...systemTypes, ...proof], system: true });
  return inOrder(
    read({ ...filter, system: false }),
    where(system, (event) => systemTypes.includes(event.type) && isWanted(event)),
  );
}

function streamTest(filter: EventFilter): (event: RecordedEvent) => boolean {
  const { category, tenant, stream: accepts } = compileFilter(filter);
  return ({ stream }) => {
    const subject = streamOfMetadata(stream) ?? stream;
    const name = categoryOf(subject);
    if (category !== undefined && name !== category) return false;
    if (tenant !== undefined && !subject.startsWith(`${tenant}-`, (name?.length ?? -1) + 1)) {
      return false;
    }
    return accepts?.(subject) !== false;
  };
}

async function* where<T>(
  items: AsyncIterable<T>,
  isWanted: (item: T) => boolean,
): AsyncGenerator<T, void, undefined> {
  for await (const item of items) if (isWanted(item)) yield item;
}

/** Merges two ordered readers. */
async function* inOrder(
  one: AsyncIterable<RecordedEvent>,
  other: AsyncIterable<RecordedEvent>,
): AsyncGenerator<RecordedEvent, void, undefined> {
  const [a, b] = [one[Symbol.asyncIterator](), other[Symbol.asyncIterator]()];
  let [left, right] = [await a.next(), await b.next()];
  while (left.done !== true || right.done !== true) {
    const takeLeft =
      left.done !== true && (right.done === true || left.value.position < right.value.position);
    if (takeLeft) {
      yield left.value as RecordedEvent;
      left = await a.next();
    } else {
      yield right.value as RecordedEvent;
      right = await b.next();
    }
  }
}

function share(after: Position, position: Position, end: Position): number {
  const total = positionDistance(after, end);
  return total === 0 ? 1 : positionDistance(after, position) / total;
}
