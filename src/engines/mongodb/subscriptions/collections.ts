// The collections of subscriptions. `processed_events` and `dead_letter_queue` have the shapes, names and indexes of the
// architecture document; the other collections serve checkpoints and leases.

import type { Collection, Db } from 'mongodb';
import type { Attempt, DeadLetter, DeadLetterStatus } from '../../../subscriptions/dead-letter.ts';
import type { ShardKey } from '../../../subscriptions/subscription-storage.ts';
import {
  derivedOptions,
  describeIndex,
  ignoringCode,
  indexNotFound,
  namespaceNotFound,
  notImplemented,
} from '../collections.ts';

export interface SubscriptionDocument {
  /** The name of the subscription. */
  readonly _id: string;
  readonly shards: number;
  readonly paused: boolean;
  /** JSON; null selects all events. */
  readonly filter: string | null;
}

export interface ShardDocument extends ShardKey {
  readonly _id: string;
  /** Null before the first checkpoint. A mark may have a higher one. */
  readonly position: number | null;
  readonly owner: string;
  readonly token: number;
  readonly expiresAt: Date;
}

/** The transactions of an owner write one slot each, so that they do not conflict with each other. */
interface FenceDocument {
  readonly _id: string;
  readonly token: number;
  readonly commits: number;
}

/** An event that was processed above the checkpoint. */
interface MarkDocument {
  readonly _id: string;
  readonly shardId: string;
  readonly position: number;
  /** The checkpoint that was committed with the mark; 0: none. */
  readonly checkpoint: number;
}

interface BlockedDocument {
  readonly _id: string;
  readonly subscription: string;
  readonly shardId: string;
  readonly stream: string;
  /** Null while a dead letter parks the stream. */
  readonly dueAtMs: number | null;
}

export interface WaitingDocument {
  readonly _id: string;
  readonly subscription: string;
  readonly shardId: string;
  readonly stream: string;
  readonly position: number;
  readonly eventId: string;
  readonly failures: number;
  /** FerretDB omits an empty list. */
  readonly history?: readonly Attempt[];
}

interface WorkerDocument {
  readonly _id: string;
  readonly subscription: string;
  readonly worker: string;
  readonly expiresAt: Date;
}

/** The fields of the architecture document, and the lease of the claim. */
interface ProcessedDocument {
  readonly eventId: string;
  readonly handlerName: string;
  /** Null until the effect is confirmed. */
  readonly processedAt: Date | null;
  readonly expiresAt: Date;
  readonly token: number;
  readonly leasedUntil: Date;
}

/** The first twelve fields are those of the architecture document. */
export interface DeadLetterDocument {
  readonly _id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateId: string;
  /** Null if it is in `payloadJson`. */
  readonly payload: unknown;
  readonly error: string;
  readonly attempts: number;
  readonly createdAt: Date;
  readonly status: DeadLetterStatus;
  readonly replayedAt: Date | null;
  readonly replayedBy: string | null;
  readonly notes: string;

  /** A payload that BSON would change. */
  readonly payloadJson?: string;
  readonly cause: DeadLetter['cause'];
  readonly handler: string;
  readonly shard: number;
  readonly tenant: string;
  readonly correlationId: string;
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  readonly parked: boolean;
  readonly history: readonly Attempt[];
  readonly replayRequestedAt: Date | null;
  readonly discardedAt: Date | null;
  readonly discardedBy: string | null;
  readonly discardReason: string | null;
}

export interface SubscriptionCollections {
  readonly subscriptions: Collection<SubscriptionDocument>;
  readonly shards: Collection<ShardDocument>;
  readonly fences: Collection<FenceDocument>;
  readonly marks: Collection<MarkDocument>;
  readonly blocked: Collection<BlockedDocument>;
  readonly waiting: Collection<WaitingDocument>;
  readonly workers: Collection<WorkerDocument>;
  readonly processed: Collection<ProcessedDocument>;
  readonly letters: Collection<DeadLetterDocument>;
}

export function subscriptionCollections(db: Db): SubscriptionCollections {
  return {
    subscriptions: db.collection('subscriptions', derivedOptions),
    shards: db.collection('subscription_shards', derivedOptions),
    fences: db.collection('subscription_fences', derivedOptions),
    marks: db.collection('subscription_marks', derivedOptions),
    blocked: db.collection('subscription_blocked', derivedOptions),
    waiting: db.collection('subscription_waiting', derivedOptions),
    workers: db.collection('subscription_workers', derivedOptions),
    processed: db.collection('processed_events', derivedOptions),
    letters: db.collection('dead_letter_queue', derivedOptions),
  };
}

/** The indexes of the architecture document, and those of the queries. */
const indexes = {
  processed: [{ key: { eventId: 1, handlerName: 1 }, unique: true }],
  letters: [
    { key: { status: 1, createdAt: 1 } },
    { key: { eventType: 1, createdAt: 1 } },
    { key: { eventId: 1, handler: 1 }, unique: true },
    { key: { handler: 1, status: 1, createdAt: 1 } },
  ],
  shards: [{ key: { subscription: 1 } }],
  marks: [{ key: { shardId: 1, position: 1 } }],
  blocked: [{ key: { shardId: 1, dueAtMs: 1 } }, { key: { subscription: 1 } }],
  waiting: [{ key: { shardId: 1, stream: 1, position: 1 } }, { key: { subscription: 1 } }],
  workers: [{ key: { subscription: 1 } }],
} as const;

const expiryIndex = { key: { expiresAt: 1 }, expireAfterSeconds: 0 } as const;
/** The index of the architecture document, which the dead letters of two handlers would violate. */
const eventIndex = describeIndex({ key: { eventId: 1 }, unique: true });

export async function migrateSubscriptions(collections: SubscriptionCollections): Promise<void> {
  for (const [role, wanted] of Object.entries(indexes)) {
    const collection = collections[role as keyof typeof indexes] as Pick<
      Collection,
      'listIndexes' | 'createIndexes'
    >;
    const existing = await indexesOf(collection);
    const missing = wanted.filter((index) => !existing.has(describeIndex(index)));
    if (missing.length > 0) await collection.createIndexes(missing.map((index) => ({ ...index })));
  }
  const { processed, letters } = collections;
  if (!(await indexesOf(processed)).has(describeIndex(expiryIndex))) {
    // FerretDB has no such index; `sweep` removes expired entries there.
    await ignoringCode(notImplemented, () => processed.createIndexes([expiryIndex]));
  }
  const unwanted = (await indexesOf(letters)).get(eventIndex);
  if (unwanted !== undefined) {
    await ignoringCode(indexNotFound, () => letters.dropIndex(unwanted));
  }
}

/** The names of the indexes by their content. */
async function indexesOf(
  collection: Pick<Collection, 'listIndexes'>,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  await ignoringCode(namespaceNotFound, async () => {
    for (const index of await collection.listIndexes().toArray()) {
      found.set(describeIndex(index), String(index['name']));
    }
  });
  return found;
}

export function shardIdOf({ subscription, shard }: ShardKey): string {
  return `${subscription}/${shard}`;
}
