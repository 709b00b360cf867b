// The types of events that the store has seen: filters decide by type once, not once per event.

import type { Collection } from 'mongodb';
import { isDuplicate } from './mongodb-connection.ts';

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
      if (added.length === 0) return;
      try {
        await collection.insertMany(
          added.map((_id) => ({ _id })),
          { ordered: false },
        );
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
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
