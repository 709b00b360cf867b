// From a stream into cold storage, and only then out of the stream. Killed anywhere, the next run goes on:
// what has an index is archived, once; what has none is archived again under the same name.

import { hasCode, MillraceError } from '../foundation/error.ts';
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
  /** Stored before this, by the broker's clock. */
  readonly before: Date;
  readonly signal?: AbortSignal | undefined;
}

export interface ArchivedStream {
  /** Written now; what an earlier run had written is not counted. */
  readonly archived: number;
  readonly removed: number;
  /** Archived, and left in the stream because a group has not acked it. */
  readonly heldBack: number;
}

/** Of one segment, before it is compressed. */
const segmentMessagesMax = 10_000;
const segmentBytesMax = 16_777_216;

/**
 * Moves what is old in a stream into cold storage: written, read back and compared, indexed, and only
 * then trimmed; what a group has not acked is archived and stays.
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
  // What an archiver has copied that is not old yet stays where it is.
  const { before } = options;
  const isAll = new Date(upTo.lastStoredAt) >= before;
  const order = isAll
    ? { storedBefore: before }
    : { beforeSequence: sequenceAfter(upTo.lastSequence) };
  return { archived, ...(await bus.trim(subject, order)) };
}

/** The same without the trim: how many were written, and up to where the subject is archived. */
export async function copyToArchive(
  bus: Pick<Bus, 'readStored'>,
  storage: ColdStorage,
  subject: string,
  { before, signal }: ArchiveStreamOptions,
): Promise<{ readonly archived: number; readonly upTo: SegmentIndex | undefined }> {
  let upTo = await archivedUpTo(storage, subject);
  let archived = 0;
  const archivedTo = upTo?.lastSequence;
  for await (const segment of segmentsToBe(bus, subject, { before, archivedTo, signal })) {
    upTo = await keep(storage, segment);
    archived += segment.length;
    // Another one was quicker, and took more or less: the next run sees what is left.
    if (upTo.lastSequence !== segment.at(-1)?.sequence) break;
  }
  return { archived, upTo };
}

async function* segmentsToBe(
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

/** Resolves with the index that is there: this one's, or that of whoever was quicker. */
async function keep(
  storage: ColdStorage,
  messages: readonly StoredMessage[],
): Promise<SegmentIndex> {
  const { index, data } = encodeSegment(messages);
  await storage.put(index.data, data);
  // What cannot be read back is not archived, whatever the storage said.
  decodeSegment(index, await storage.get(index.data));
  const name = indexName(index.subject, index.firstSequence);
  if (await storage.put(name, Buffer.from(JSON.stringify(index)), { ifAbsent: true })) return index;
  const there = await readIndex(storage, name);
  if (there.data !== index.data) await storage.remove(index.data);
  decodeSegment(there, await storage.get(there.data));
  return there;
}

/** Up to where the subject is archived; only the last index is read, however many there are. */
async function archivedUpTo(
  storage: ColdStorage,
  subject: string,
): Promise<SegmentIndex | undefined> {
  const folder = archiveFolder(subject);
  let last: string | undefined;
  for await (const name of storage.list(folder)) {
    const first = name.slice(folder.length, -indexSuffix.length);
    // Names sort as texts, sequences as numbers; a subject below this one has a folder of its own.
    if (!name.endsWith(indexSuffix) || !isSequence(first)) continue;
    if (last === undefined || compareSequences(first, last) > 0) last = first;
  }
  if (last === undefined) return undefined;
  return readIndex(storage, indexName(subject, last));
}

/**
 * What is archived of the subjects that a pattern takes: subject by subject, oldest first.
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
    const text = `the archive's index ${name} is damaged`;
    throw new MillraceError('STORE_CORRUPT', text, { cause, details: { index: name } });
  }
}

export interface ReadArchiveOptions {
  readonly from?: Date | undefined;
  /** Not included. */
  readonly to?: Date | undefined;
}

/**
 * The archived messages of a pattern, each segment checked against its index.
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
      const isIn =
        (from === undefined || message.storedAt >= from) &&
        (to === undefined || message.storedAt < to);
      if (isIn) yield message;
    }
  }
}

export interface Restored {
  readonly published: number;
  /** Published before, within the bus's dedupe window. */
  readonly duplicates: number;
  /** No envelope: there is nothing to publish. */
  readonly malformed: number;
}

const restoreBatch = 500;

/**
 * Publishes archived messages again: to the subject that is given, so that no group of the old one sees
 * them twice, or to their own. Ids follow from where they stood, so that a second run within the dedupe
 * window stores nothing twice.
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
    const again = toNewMessage(message, options.subject);
    if (again === undefined) total.malformed += 1;
    else batch.push(again);
    if (batch.length === restoreBatch) await flush();
  }
  await flush();
  return total;
}

function toNewMessage({ subject, sequence, data }: StoredMessage, to: string | undefined) {
  try {
    const envelope = decodeTransportEnvelope(data);
    const { contentType = jsonContentType, payload, traceparent, tracestate, headers } = envelope;
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
      trace:
        traceparent === undefined
          ? undefined
          : { traceparent, ...(tracestate === undefined ? {} : { tracestate }) },
    };
  } catch (error) {
    if (hasCode(error, 'ENVELOPE_INVALID')) return undefined;
    throw error;
  }
}
