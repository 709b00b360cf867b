// A MongoDB database as several roles: the event store, its subscriptions, and the snapshots of its aggregates.

import type { ClientSession, Db, MongoClient } from 'mongodb';
import type { KeyClaims } from '../../aggregates/idempotency.ts';
import type { SnapshotStore } from '../../aggregates/snapshot-store.ts';
import type { ReadModelVersions } from '../../projections/read-model-versions.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { SubscriptionStorage } from '../../subscriptions/subscription-storage.ts';
import { mongodbAggregateStorage } from './aggregate-storage.ts';
import { retryMigration } from './collections.ts';
import { unavailable } from './connection.ts';
import { mongodbEventStore, type MongoOptions } from './event-store.ts';
import { mongodbReadModelVersions } from './read-model-versions.ts';
import { migrateSubscriptions, subscriptionCollections } from './subscriptions/collections.ts';
import { mongodbSubscriptionStorage } from './subscriptions/storage.ts';

export interface MongoEngine extends AsyncDisposable {
  readonly store: EventStore;
  /** With transactions for handlers if the server is a replica set or a sharded cluster. */
  readonly subscriptions: SubscriptionStorage<ClientSession>;
  /** In `read_model_versions`. */
  readonly readModelVersions: ReadModelVersions;
  /** In `<aggregate>_snapshots`. */
  readonly snapshots: SnapshotStore;
  /** In `command_keys`. */
  readonly keyClaims: KeyClaims;
}

/**
 * Opens a MongoDB database, by URL or with your `MongoClient` or `Db`, which you close.
 *
 * @example
 * import { openMongo } from 'millrace/engines/mongodb';
 *
 * await using db = await openMongo('mongodb://localhost:27017/shop');
 * console.log(await db.store.head());
 */
export async function openMongo(
  target: string | MongoClient | Db,
  options: MongoOptions = {},
): Promise<MongoEngine> {
  const { store, db, isReplicated } = await mongodbEventStore(target, options);
  try {
    if (options.migrate !== 'off') {
      await retryMigration(() => migrateSubscriptions(subscriptionCollections(db)));
    }
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw unavailable(error);
  }
  return {
    store,
    subscriptions: mongodbSubscriptionStorage(db, { hasTransactions: isReplicated }),
    readModelVersions: mongodbReadModelVersions(db),
    ...mongodbAggregateStorage(db),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
