// A MongoDB database as an event store.

import type { Db, MongoClient } from 'mongodb';
import type { EventStore } from '../../store/event-store.ts';
import { mongodbEventStore, type MongoOptions } from './event-store.ts';

export interface MongoEngine extends AsyncDisposable {
  readonly store: EventStore;
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
  const store = await mongodbEventStore(target, options);
  return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
