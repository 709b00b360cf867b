// The collections of a store in MongoDB and what lies in them. `events` has the shape that the
// architecture document gives it; everything else serves the global order (see commit-log.ts).

import type { Collection, Db, IndexDescription } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { codeOf, isTransient } from './mongodb-connection.ts';

/**
 * One event. The first eight fields are the document's own, the rest is ours.
 *
 * `aggregateId` is the stream's name, not the bare id of the aggregate: two tenants, or two kinds of
 * aggregate, may use one id, while a stream's name holds tenant and category. So the document's
 * unique index on `aggregateId` and `version` holds as it stands there, and a query by
 * `aggregateId` can never mix tenants.
 */
export interface EventDocument {
  /** The event's id where it was free; the same event in a second stream gets another (`eventId`). */
  readonly _id: string;
  readonly aggregateId: string;
  readonly aggregateType: string;
  readonly eventType: string;
  /** The payload: as BSON where BSON gives it back unchanged, otherwise as JSON text (`encoding`). */
  readonly eventData: unknown;
  /** Counts from 1: the aggregate's version after this event. Always revision + 1. */
  readonly version: number;
  /** When it occurred. */
  readonly timestamp: Date;
  readonly metadata: EventMetadata;

  /** Where it stands among all events: from 1, without holes but for what was scavenged. */
  readonly position: number;
  readonly tenant: string;
  readonly category?: string;
  readonly recordedAt: Date;
  readonly eventId?: string;
  readonly encoding?: 'json';
  /** On metadata of a stream: the retention that is in force from here on. */
  readonly retention?: StoredRetention;
  /** On the last event of an append to a stream that came back after a deletion. */
  readonly truncateBefore?: number;
  /** On the event that ended its stream. */
  readonly tombstone?: true;
}

export interface StoredRetention {
  readonly truncateBefore: number;
  readonly maxCount?: number;
  readonly maxAgeSeconds?: number;
}

/** The rest of the envelope; members that would only repeat other fields are left out. */
export interface EventMetadata {
  readonly correlationId?: string;
  readonly causationId?: string;
  readonly userId?: string;
  readonly user?: unknown;
  readonly idempotencyKey?: string;
  readonly aggregate?: unknown;
  readonly headers?: unknown;
  /** Where `timestamp` cannot say it: with an offset, or finer than milliseconds. */
  readonly occurredAt?: string;
  /** All of it as JSON text, where BSON would not give it back unchanged. */
  readonly envelope?: string;
}

/** One slot of the log; `_id` is its number, and taking it is what commits. */
export interface CommitDocument {
  readonly _id: string;
  /** The position of its first event. */
  readonly from: number;
  readonly count: number;
  /** Whose it is: how a writer knows its own commit after the answer was lost. */
  readonly by: string;
  readonly at: Date;
  /** Holds no events: asks the others to leave the next number to this writer. */
  readonly claim?: true;
  /** Until they lie in `events`, in one of these two. */
  readonly events?: readonly EventDocument[];
  readonly parts?: readonly string[];
}

/** Events of a commit that is too large for one document; worth something for this slot only. */
interface PartDocument {
  readonly _id: string;
  readonly slot: number;
  readonly events: readonly EventDocument[];
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
  /** Every type that was ever appended; filters are asked once for each. */
  readonly types: Collection<{ readonly _id: string }>;
  readonly keys: Collection<KeyDocument>;
}

/**
 * Acknowledged is on the disks of most of the servers, and a commit counts when it is there: a
 * change of the primary takes back nothing that anyone has seen. How values are read does not depend
 * on how the user's client was set up.
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
 * What follows from commits was on most of the servers before anyone goes by it. A primary has it
 * then, but one that just took over does not yet know that others have it too, and would leave it out.
 */
const derivedOptions = { ...logOptions, readConcern: { level: 'local' } } as const;

export function collectionsOf(db: Db, events: string): MongodbCollections {
  return {
    events: db.collection(events, derivedOptions),
    commits: db.collection(`${events}_commits`, logOptions),
    parts: db.collection(`${events}_commit_parts`, logOptions),
    types: db.collection(`${events}_types`, derivedOptions),
    keys: db.collection(`${events}_subject_keys`, logOptions),
  };
}

/** Each gets MongoDB's own name (`timestamp_1`), as if the document's commands had made it. */
const eventIndexes: readonly IndexDescription[] = [
  // The document's four.
  { key: { aggregateId: 1, version: 1 }, unique: true },
  { key: { timestamp: 1 } },
  { key: { eventType: 1, timestamp: 1 } },
  { key: { aggregateType: 1, timestamp: 1 } },
  // Ours: the global order, and filtered reading along it.
  { key: { position: 1 }, unique: true },
  { key: { eventType: 1, position: 1 } },
  { key: { category: 1, position: 1 } },
  { key: { tenant: 1, position: 1 } },
];

/** Holds the few events whose `_id` is not their own id; an engine without such indexes scans. */
const otherIdIndex: IndexDescription = { key: { eventId: 1 }, sparse: true };

const migrateTriesMax = 5;
const namespaceNotFound = 26;
const namespaceExists = 48;
const notImplemented = 238;

/** Creates what is missing; several processes may do so at once, and get in each other's way. */
export async function migrateMongodb(db: Db, collections: MongodbCollections): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await createMissing(db, collections);
      return;
    } catch (error) {
      if (!isTransient(error) || attempt === migrateTriesMax) throw error;
      await systemClock.sleep(50 * 2 ** attempt);
    }
  }
}

async function createMissing(db: Db, collections: MongodbCollections): Promise<void> {
  const created = new Set((await db.listCollections().toArray()).map(({ name }) => name));
  for (const { collectionName } of Object.values(collections)) {
    if (created.has(collectionName)) continue;
    await ignoring(namespaceExists, () => db.createCollection(collectionName));
  }
  const { events } = collections;
  const there = new Set((await events.listIndexes().toArray()).map(shownIndex));
  const isMissing = (index: IndexDescription): boolean => !there.has(shownIndex(index));
  const missing = eventIndexes.filter(isMissing);
  if (missing.length > 0) await events.createIndexes(missing);
  if (isMissing(otherIdIndex))
    await ignoring(notImplemented, () => events.createIndexes([otherIdIndex]));
}

/** Without its two unique indexes the log could not be worked off twice without harm. */
export async function checkMongodb({ events }: MongodbCollections): Promise<void> {
  const there = new Set<string>();
  await ignoring(namespaceNotFound, async () => {
    for (const index of await events.listIndexes().toArray()) there.add(shownIndex(index));
  });
  const needed = eventIndexes.filter(({ unique }) => unique === true).map(shownIndex);
  const missing = needed.filter((index) => !there.has(index));
  if (missing.length === 0) return;
  const { namespace } = events;
  throw new MillraceError(
    'CONFIG_INVALID',
    `the collection ${namespace} has no index ${missing.join(' and ')}: open it once with migrate 'auto'`,
    { details: { namespace, missing } },
  );
}

/** Indexes are told apart by what they do: somebody may have made them under names of their own. */
function shownIndex(index: { readonly key?: unknown; readonly unique?: boolean }): string {
  return `${JSON.stringify(index.key)}${index.unique === true ? ' unique' : ''}`;
}

async function ignoring(code: number, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (codeOf(error) !== code) throw error;
  }
}
