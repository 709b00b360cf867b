// Copies a stream to cold storage, then trims it. After a crash the next run continues: a segment with an index is
// archived; a segment without one is archived again under the same name.

import { hasCode, MillraceError } from '../foundation/error.ts';
import { traceOf } from '../foundation/observer.ts';
import {
  archiveFolder,
  decodeSegment,
  encodeSegment,
  indexName,
  indexSuffix,
  type SegmentIndex,
} from './archive-segment.ts';
import type { Bus, StoredMessage } from './bus.ts';
import { matchesFilter } from './bus-engine.ts';
import type { ColdStorage } from './cold-storage.ts';
import { compareSequences, isSequence, sequenceAfter } from './sequence.ts';
import { decodeTransportEnvelope, isJson, jsonContentType } from './transport-envelope.ts';

export interface ArchiveStreamOptions {
  /** Archives messages stored before this time, by the broker's clock. */
  readonly before: Date;
  readonly signal?: AbortSignal | undefined;
}

export interface ArchivedStream {
  /** Messages written by this run. */
  readonly archived: number;
  readonly removed: number;
  /** Messages that are archived but stay in the stream because a group has not acked them. */
  readonly heldBack: number;
}

/** Limits of one segment before compression. */
const segmentMessagesMax = 10_000;
const segmentBytesMax = 16_777_216;

/**
 * Moves old messages of a stream to cold storage: writes them, reads them back, writes the index, then trims the
 * stream. Messages that a group has not acked are archived and stay in the stream.
 *
 * @example
 * import { archiveStream, fileColdStorage, type Bus } from 'millrace/bus';
 *
 * const archiveAudit = (bus: Bus) =>
 *   archiveStream(bus, fileColdStorage('.millrace/archive'), 'gbe.events.audit.change', {
 *     before: new Date(Date.now() - 365 * 86_400_000),
 *   });
 */
export async function archiveStream(
  bus: Pick<Bus, 'readStored' | 'trim'>,
  storage: ColdStorage,
  subject: string,
  options: ArchiveStreamOptions,
): Promise<ArchivedStream> {
  const { archived, upTo } = await copyToArchive(bus, storage, subject, options);
  if (upTo === undefined) return { archived, removed: 0, heldBack: 0 };
  // An archiver group may have copied messages that are not old yet: those stay in the stream.
  const { before } = options;
  const isAll = new Date(upTo.lastStoredAt) >= before;
  const order = isAll
    ? { storedBefore: before }
    : { beforeSequence: sequenceAfter(upTo.lastSequence) };
  return { archived, ...(await bus.trim(subject, order)) };
}

/** `upTo`: the last segment of the subject in the archive. */
export async function copyToArchive(
  bus: Pick<Bus, 'readStored'>,
  storage: ColdStorage,
  subject: string,
  { before, signal }: ArchiveStreamOptions,
): Promise<{ readonly archived: number; readonly upTo: SegmentIndex | undefined }> {
  let upTo = await archivedUpTo(storage, subject);
  let archived = 0;
  const archivedTo = upTo?.lastSequence;
  for await (const segment of segmentsOf(bus, subject, { before, archivedTo, signal })) {
    upTo = await storeSegment(storage, segment);
    archived += segment.length;
    // A concurrent run stored a segment with another last message: the next run archives the rest.
    if (upTo.lastSequence !== segment.at(-1)?.sequence) break;
  }
  return { archived, upTo };
}

async function* segmentsOf(
  bus: Pick<Bus, 'readStored'>,
  subject: string,
  how: ArchiveStreamOptions & { readonly archivedTo: string | undefined },
): AsyncGenerator<readonly StoredMessage[]> {
  const { before, archivedTo, signal } = how;
  const from = archivedTo === undefined ? 'start' : { sequence: sequenceAfter(archivedTo) };
  let segment: StoredMessage[] = [];
  let bytes = 0;
  for await (const message of bus.readStored(subject, { from, signal })) {
    if (message.storedAt >= before) break;
    segment.push(message);
    bytes += message.data.length;
    if (segment.length < segmentMessagesMax && bytes < segmentBytesMax) continue;
    yield segment;
    [segment, bytes] = [[], 0];
  }
  if (segment.length > 0) yield segment;
}

/** Resolves with the stored index: this one, or the index of a concurrent run that was first. */
async function storeSegment(
  storage: ColdStorage,
  messages: readonly StoredMessage[],
): Promise<SegmentIndex> {
  const { index, data } = encodeSegment(messages);
  await storage.put(index.data, data);
  // Check that the storage returns what was written.
  decodeSegment(index, await storage.get(index.data));
  const name = indexName(index.subject, index.firstSequence);
  if (await storage.put(name, Buffer.from(JSON.stringify(index)), { ifAbsent: true })) return index;
  const first = await readIndex(storage, name);
  if (first.data !== index.data) await storage.remove(index.data);
  decodeSegment(first, await storage.get(first.data));
  return first;
}

/** The last segment of the subject in the archive; reads only that index. */
async function archivedUpTo(
  storage: ColdStorage,
  subject: string,
): Promise<SegmentIndex | undefined> {
  const folder = archiveFolder(subject);
  let last: string | undefined;
  for await (const name of storage.list(folder)) {
    const first = name.slice(folder.length, -indexSuffix.length);
    // Names sort as strings, sequences as numbers; subjects below this one have subfolders.
    if (!name.endsWith(indexSuffix) || !isSequence(first)) continue;
    if (last === undefined || compareSequences(first, last) > 0) last = first;
  }
  if (last === undefined) return undefined;
  return readIndex(storage, indexName(subject, last));
}

/**
 * The archived segments of the subjects that match a pattern: subject by subject, oldest first.
 *
 * @example
 * import { fileColdStorage, listArchive } from 'millrace/bus';
 *
 * const storage = fileColdStorage('.millrace/archive');
 * for await (const { subject, count } of listArchive(storage, 'gbe.events.>')) {
 *   console.log(subject, count);
 * }
 */
export async function* listArchive(
  storage: ColdStorage,
  pattern: string,
): AsyncGenerator<SegmentIndex> {
  const fixed = pattern.split('.');
  const wild = fixed.findIndex((token) => token === '*' || token === '>');
  const folder =
    wild === 0 ? '' : archiveFolder(fixed.slice(0, wild === -1 ? undefined : wild).join('.'));
  const bySubject = new Map<string, SegmentIndex[]>();
  for await (const name of storage.list(folder)) {
    if (!name.endsWith(indexSuffix)) continue;
    const index = await readIndex(storage, name);
    if (!matchesFilter(pattern, index.subject)) continue;
    const segments = bySubject.get(index.subject);
    if (segments === undefined) bySubject.set(index.subject, [index]);
    else segments.push(index);
  }
  for (const segments of bySubject.values()) {
    yield* segments.toSorted((a, b) => compareSequences(a.firstSequence, b.firstSequence));
  }
}

async function readIndex(storage: ColdStorage, name: string): Promise<SegmentIndex> {
  const data = await storage.get(name);
  try {
    return JSON.parse(Buffer.from(data ?? []).toString()) as SegmentIndex;
  } catch (cause) {
    const text = `archive index ${name} is damaged`;
    throw new MillraceError('STORE_CORRUPT', text, { cause, details: { index: name } });
  }
}

export interface ReadArchiveOptions {
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
}

/**
 * The archived messages of the subjects that match a pattern; each segment is checked against its index.
 *
 * @example
 * import { fileColdStorage, readArchive } from 'millrace/bus';
 *
 * const storage = fileColdStorage('.millrace/archive');
 * for await (const { sequence, data } of readArchive(storage, 'gbe.events.audit.change')) {
 *   console.log(sequence, data.length);
 * }
 */
export async function* readArchive(
  storage: ColdStorage,
  pattern: string,
  { from, to }: ReadArchiveOptions = {},
): AsyncGenerator<StoredMessage> {
  for await (const index of listArchive(storage, pattern)) {
    if (from !== undefined && new Date(index.lastStoredAt) < from) continue;
    if (to !== undefined && new Date(index.firstStoredAt) >= to) continue;
    for (const message of decodeSegment(index, await storage.get(index.data))) {
      const isSelected =
        (from === undefined || message.storedAt >= from) &&
        (to === undefined || message.storedAt < to);
      if (isSelected) yield message;
    }
  }
}

export interface Restored {
  readonly published: number;
  /** Messages that were already published within the dedupe window. */
  readonly duplicates: number;
  /** Entries without a valid envelope, which cannot be published. */
  readonly malformed: number;
}

const restoreBatch = 500;

/**
 * Publishes archived messages again: to the given subject, or to their original one, where existing groups get them
 * a second time. The ids are derived, so a second run within the dedupe window stores no duplicates.
 *
 * @example
 * import { fileColdStorage, restoreArchive, type Bus } from 'millrace/bus';
 *
 * const restoreAudit = (bus: Bus) =>
 *   restoreArchive(bus, fileColdStorage('.millrace/archive'), 'gbe.events.audit.change', {
 *     subject: 'gbe.restored.audit',
 *   });
 */
export async function restoreArchive(
  bus: Pick<Bus, 'publishMany'>,
  storage: ColdStorage,
  pattern: string,
  options: ReadArchiveOptions & { readonly subject?: string | undefined } = {},
): Promise<Restored> {
  const total = { published: 0, duplicates: 0, malformed: 0 };
  let batch: Parameters<Bus['publishMany']>[0][number][] = [];
  const flush = async (): Promise<void> => {
    const published = await bus.publishMany(batch);
    const duplicates = published.filter(({ isDuplicate }) => isDuplicate).length;
    total.duplicates += duplicates;
    total.published += published.length - duplicates;
    batch = [];
  };
  for await (const message of readArchive(storage, pattern, options)) {
    const restored = toNewMessage(message, options.subject);
    if (restored === undefined) total.malformed += 1;
    else batch.push(restored);
    if (batch.length === restoreBatch) await flush();
  }
  await flush();
  return total;
}

function toNewMessage({ subject, sequence, data }: StoredMessage, to: string | undefined) {
  try {
    const envelope = decodeTransportEnvelope(data);
    const { contentType = jsonContentType, payload, headers } = envelope;
    const { tenant, correlationId, causationId, schemaVersion } = envelope;
    return {
      subject: to ?? envelope.subject,
      id: to === undefined ? envelope.id : `restore:${sequence}`,
      payload: isJson(contentType) ? payload : Buffer.from(String(payload), 'base64'),
      contentType,
      tenant,
      correlationId,
      causationId,
      schemaVersion,
      headers: {
        ...headers,
        'restored-from': `${subject} ${sequence}`,
        'restored-id': envelope.id,
      },
      trace: traceOf(envelope),
    };
  } catch (error) {
    if (hasCode(error, 'ENVELOPE_INVALID')) return undefined;
    throw error;
  }
}
