// The collections of a store in MongoDB and their documents. `events` has the shape of the architecture document;
// the other collections serve the global order (see commit-log.ts).

import type { Collection, Db, IndexDescription } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { withStream, type FormerEvent } from './aggregate-id.ts';
import { codeOf, isTransient } from './connection.ts';

/**
 * One event. The first eight fields come from the architecture document, the others are added by this adapter. Tenants
 * and aggregate types may use the same id, so `stream`, not `aggregateId`, identifies the aggregate: a query by
 * `aggregateId` may need the tenant in addition.
 */
export interface EventDocument {
  /** The event id if it was free; the same event in a second stream gets another `_id` (see `eventId`). */
  readonly _id: string;
  readonly aggregateId: string;
  readonly aggregateType: string;
  readonly eventType: string;
  /** The payload: BSON if BSON preserves it exactly, otherwise a JSON string (see `encoding`). */
  readonly eventData: unknown;
  /** The version of the aggregate after this event, from 1: always revision + 1. */
  readonly version: number;
  /** When the event occurred. */
  readonly timestamp: Date;
  readonly metadata: EventMetadata;

  readonly stream: string;
  /** The position among all events, from 1, with gaps only where events were scavenged. */
  readonly position: number;
  readonly tenant: string;
  readonly category?: string;
  readonly recordedAt: Date;
  readonly eventId?: string;
  readonly encoding?: 'json';
  /** The retention from this event on; only in metadata streams. */
  readonly retention?: StoredRetention;
  /** The truncation after a restore; only on the last event of an append that restored a deleted stream. */
  readonly truncateBefore?: number;
  /** True on the tombstone of a stream. */
  readonly tombstone?: true;
}

export interface StoredRetention {
  readonly truncateBefore: number;
  readonly maxCount?: number;
  readonly maxAgeSeconds?: number;
}

/** The rest of the envelope, without members that other fields already contain. */
export interface EventMetadata {
  readonly correlationId?: string;
  readonly causationId?: string;
  readonly userId?: string;
  readonly user?: unknown;
  readonly idempotencyKey?: string;
  readonly aggregate?: unknown;
  readonly headers?: unknown;
  /** The time with an offset or finer than milliseconds, which `timestamp` cannot express. */
  readonly occurredAt?: string;
  /** The whole envelope as a JSON string, if BSON would change it. */
  readonly envelope?: string;
}

/** One slot of the log. `_id` is its number, and inserting it commits. */
export interface CommitDocument {
  readonly _id: string;
  /** The position of the first event of the commit. */
  readonly from: number;
  readonly count: number;
  /** The id of the batch: a writer recognizes its commit after a lost response. */
  readonly by: string;
  readonly at: Date;
  /** True on a commit without events that reserves the next number for this writer. */
  readonly claim?: true;
  /** The events, in one of these two fields until they are copied to `events`. */
  readonly events?: readonly EventDocument[];
  readonly parts?: readonly string[];
}

/** Some events of a commit that is too large for one document; valid for this slot only. */
interface PartDocument {
  readonly _id: string;
  readonly slot: number;
  readonly events: readonly EventDocument[];
}

/** A point of the log: the number of its last commit, and the position of the last event in it. */
export interface LogPoint {
  readonly commit: number;
  readonly position: number;
}

const digits = 16;

/** Formats a number with a fixed width, so that strings sort like numbers. */
export function commitId(number: number): string {
  return number.toString(16).padStart(digits, '0');
}

export function numberOf(id: string): number {
  return Number.parseInt(id, 16);
}

export function pointOf({ _id, from, count }: CommitDocument): LogPoint {
  return { commit: numberOf(_id), position: from + count - 1 };
}

/** Whether the commit still holds its events, which may be missing in `events`. */
export function holdsEvents({ events, parts }: CommitDocument): boolean {
  return events !== undefined || parts !== undefined;
}

export function missingCommit(number: number): MillraceError {
  return new MillraceError('STORE_CORRUPT', `commit ${number} of the log was deleted`, {
    details: { commit: commitId(number) },
  });
}

export interface KeyDocument {
  readonly _id: string;
  readonly key?: Uint8Array;
  readonly forgottenAt?: Date;
}

export interface MongodbCollections {
  readonly events: Collection<EventDocument>;
  readonly commits: Collection<CommitDocument>;
  readonly parts: Collection<PartDocument>;
  /** All event types that were ever appended; a filter is evaluated once per type. */
  readonly types: Collection<{ readonly _id: string }>;
  readonly keys: Collection<KeyDocument>;
}

/**
 * An acknowledged commit is on the disks of a majority, and only such commits are read: an election rolls back
 * nothing that was visible. The other options make reading independent of the settings of the user's client.
 */
const logOptions = {
  readPreference: 'primary',
  readConcern: { level: 'majority' },
  writeConcern: { w: 'majority', journal: true },
  promoteValues: true,
  promoteLongs: true,
  promoteBuffers: true,
  useBigInt64: false,
  bsonRegExp: false,
  raw: false,
  ignoreUndefined: false,
  serializeFunctions: false,
} as const;

/**
 * Derived data reached a majority before any process relies on it. A new primary has it, but may not know yet
 * that the majority has it too, and would omit it from a majority read.
 */
export const derivedOptions = { ...logOptions, readConcern: { level: 'local' } } as const;

export function collectionsOf(db: Db, events: string): MongodbCollections {
  return {
    events: db.collection(events, derivedOptions),
    commits: db.collection(`${events}_commits`, logOptions),
    parts: db.collection(`${events}_commit_parts`, logOptions),
    types: db.collection(`${events}_types`, derivedOptions),
    keys: db.collection(`${events}_subject_keys`, logOptions),
  };
}

const streamIndex: IndexDescription = { key: { stream: 1, version: 1 }, unique: true };

/** The index of the architecture document, which two aggregates with the same id would violate. */
const formerIndex: IndexDescription = { key: { aggregateId: 1, version: 1 }, unique: true };

/** Indexes with the default names of MongoDB (`timestamp_1`), like the commands of the architecture document. */
const eventIndexes: readonly IndexDescription[] = [
  // The architecture document defines these indexes.
  { key: { aggregateId: 1, version: 1 } },
  { key: { timestamp: 1 } },
  { key: { eventType: 1, timestamp: 1 } },
  { key: { aggregateType: 1, timestamp: 1 } },
  // These indexes serve streams, the global order, and filtered reads along it.
  streamIndex,
  { key: { position: 1 }, unique: true },
  { key: { eventType: 1, position: 1 } },
  { key: { category: 1, position: 1 } },
  { key: { tenant: 1, position: 1 } },
];

/** An index for the few events whose `_id` is not their event id; engines without sparse indexes scan instead. */
const otherIdIndex: IndexDescription = { key: { eventId: 1 }, sparse: true };

const migrateAttemptsMax = 5;
const moveBatchMax = 500;
export const namespaceNotFound = 26;
export const indexNotFound = 27;
const namespaceExists = 48;
export const notImplemented = 238;

/** Creates missing collections and indexes. */
export function migrateMongodb(db: Db, collections: MongodbCollections): Promise<void> {
  return retryMigration(() => createMissing(db, collections));
}

/** Concurrent processes may conflict. */
export async function retryMigration(migrate: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await migrate();
      return;
    } catch (error) {
      if (!isTransient(error) || attempt === migrateAttemptsMax) throw error;
      await systemClock.sleep(50 * 2 ** attempt);
    }
  }
}

async function createMissing(db: Db, collections: MongodbCollections): Promise<void> {
  const created = new Set((await db.listCollections().toArray()).map(({ name }) => name));
  for (const { collectionName } of Object.values(collections)) {
    if (created.has(collectionName)) continue;
    await ignoringCode(namespaceExists, () => db.createCollection(collectionName));
  }
  const { events } = collections;
  const found = await events.listIndexes().toArray();
  for (const index of found) {
    if (describeIndex(index) === describeIndex(formerIndex)) {
      await ignoringCode(indexNotFound, () => events.dropIndex(String(index['name'])));
    }
  }
  const existing = new Set(found.map(describeIndex));
  const isMissing = (index: IndexDescription): boolean => !existing.has(describeIndex(index));
  if (isMissing(streamIndex)) await moveStreamNames(events);
  const missing = eventIndexes.filter(isMissing);
  if (missing.length > 0) await events.createIndexes(missing);
  if (isMissing(otherIdIndex))
    await ignoringCode(notImplemented, () => events.createIndexes([otherIdIndex]));
}

/** Writes the field `stream` of events of earlier versions; safe to interrupt, and to run concurrently. */
async function moveStreamNames(events: Collection<EventDocument>): Promise<void> {
  const former = { stream: { $exists: false } } as const;
  for (;;) {
    const batch = await events
      .find<FormerEvent & Pick<EventDocument, '_id'>>(former)
      .limit(moveBatchMax)
      .toArray();
    if (batch.length === 0) return;
    await events.bulkWrite(
      batch.map((document) => {
        const { _id, stream, aggregateId } = withStream(document);
        return {
          updateOne: { filter: { _id, ...former }, update: { $set: { stream, aggregateId } } },
        };
      }),
    );
  }
}

/** The two unique indexes are required: they make copying events from the log idempotent. */
export async function checkMongodb({ events }: MongodbCollections): Promise<void> {
  const existing = new Set<string>();
  await ignoringCode(namespaceNotFound, async () => {
    for (const index of await events.listIndexes().toArray()) existing.add(describeIndex(index));
  });
  const needed = eventIndexes.filter(({ unique }) => unique === true).map(describeIndex);
  const missing = needed.filter((index) => !existing.has(index));
  if (missing.length === 0) return;
  const { namespace } = events;
  throw new MillraceError(
    'CONFIG_INVALID',
    `collection ${namespace} lacks the index ${missing.join(' and ')}. Open the store once with migrate: 'auto'.`,
    { details: { namespace, missing } },
  );
}

/** Compares indexes by content, because the user may have created an index under another name. */
export function describeIndex(index: {
  readonly key?: unknown;
  readonly unique?: boolean;
}): string {
  return `${JSON.stringify(index.key)}${index.unique === true ? ' unique' : ''}`;
}

export async function ignoringCode(code: number, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (codeOf(error) !== code) throw error;
  }
}
