// The event types of the store: a filter is evaluated once per type, not once per event.

import type { Collection } from 'mongodb';
import { isDuplicate, majorityWait } from './connection.ts';

export interface MongodbEventTypes {
  /** Resolves when every reader can see the types. Called before their events are committed. */
  add(types: readonly string[]): Promise<void>;
  /** Returns at least all types up to the head of the log. */
  all(): Promise<ReadonlySet<string>>;
  /** Reports that another process committed, possibly with new types. */
  refresh(): void;
}

export function createMongodbEventTypes(
  collection: Collection<{ readonly _id: string }>,
): MongodbEventTypes {
  const known = new Set<string>();
  let loaded: Promise<void> | undefined;

  async function load(): Promise<void> {
    for (const { _id } of await collection.find().toArray()) known.add(_id);
  }

  return {
    async add(types) {
      const added = [...new Set(types)].filter((type) => !known.has(type));
      await insertUntilVisible(collection, added);
      for (const type of added) known.add(type);
    },
    async all() {
      const loading = (loaded ??= load());
      try {
        await loading;
      } catch (error) {
        if (loaded === loading) loaded = undefined;
        throw error;
      }
      return known;
    },
    refresh() {
      loaded = undefined;
    },
  };
}

/** A duplicate may come from another process and not have reached a majority yet. */
async function insertUntilVisible(
  collection: Collection<{ readonly _id: string }>,
  types: readonly string[],
): Promise<void> {
  let missing = types;
  for (let attempt = 0; missing.length > 0; attempt += 1) {
    try {
      await collection.insertMany(
        missing.map((_id) => ({ _id })),
        { ordered: false },
      );
      return;
    } catch (error) {
      if (!isDuplicate(error) || attempt === majorityWait.attemptsMax) throw error;
    }
    const found = await collection
      .find({ _id: { $in: [...missing] } }, { readConcern: { level: 'majority' } })
      .toArray();
    const visible = new Set(found.map(({ _id }) => _id));
    missing = missing.filter((type) => !visible.has(type));
    if (missing.length > 0) await majorityWait.sleep(attempt);
  }
}
