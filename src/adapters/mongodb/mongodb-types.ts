// The types of events that the store has seen: filters decide by type once, not once per event.

import type { Collection } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { isDuplicate } from './mongodb-connection.ts';

/** Looks at what another process has just written; together they wait for some ten seconds. */
const looksMax = 12;

export interface MongodbTypes {
  /** Resolves when all of them are known to every reader. Called before they are committed. */
  note(types: readonly string[]): Promise<void>;
  /** At least all types up to the head of the log. */
  all(): Promise<ReadonlySet<string>>;
  /** Others committed something: there may be types that were not seen yet. */
  refresh(): void;
}

export function createMongodbTypes(collection: Collection<{ readonly _id: string }>): MongodbTypes {
  const known = new Set<string>();
  let loaded: Promise<void> | undefined;

  async function load(): Promise<void> {
    for (const { _id } of await collection.find().toArray()) known.add(_id);
  }

  return {
    async note(types) {
      const added = [...new Set(types)].filter((type) => !known.has(type));
      await untilThere(collection, added);
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

/** One that is there already may be another process's, and not yet on most of the servers. */
async function untilThere(
  collection: Collection<{ readonly _id: string }>,
  types: readonly string[],
): Promise<void> {
  let missing = types;
  for (let look = 0; missing.length > 0; look += 1) {
    try {
      await collection.insertMany(
        missing.map((_id) => ({ _id })),
        { ordered: false },
      );
      return;
    } catch (error) {
      if (!isDuplicate(error) || look === looksMax) throw error;
    }
    const found = await collection
      .find({ _id: { $in: [...missing] } }, { readConcern: { level: 'majority' } })
      .toArray();
    const there = new Set(found.map(({ _id }) => _id));
    missing = missing.filter((type) => !there.has(type));
    if (missing.length > 0) await systemClock.sleep(5 * 2 ** look);
  }
}
