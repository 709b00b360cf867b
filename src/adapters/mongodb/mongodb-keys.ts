// The keys of people whose payloads are sealed. A key is only ever inserted or replaced by the fact
// that it is gone, so that no order of two processes brings one back.

import type { Collection } from 'mongodb';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { newSubjectKey } from '../../store/erasure.ts';
import type { SubjectKey, SubjectKeys } from '../../store/store-engine.ts';
import { isDuplicate, unavailable } from './mongodb-connection.ts';
import type { KeyDocument } from './mongodb-schema.ts';

/** Looks at what another process has just written; together they wait for some ten seconds. */
const looksMax = 12;

export function createMongodbKeys(collection: Collection<KeyDocument>): SubjectKeys {
  /** Whatever is there already stays; false: something was. */
  async function insertMissing(documents: readonly KeyDocument[]): Promise<boolean> {
    try {
      await collection.insertMany([...documents], { ordered: false });
      return true;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      return false;
    }
  }

  async function find(
    subjects: readonly string[],
    level: 'local' | 'majority' = 'majority',
  ): Promise<Map<string, SubjectKey>> {
    const found = await collection
      .find({ _id: { $in: [...subjects] } }, { readConcern: { level } })
      .toArray();
    return new Map(found.map((document) => [document._id, toKey(document)]));
  }

  /** Never fewer than asked for: what has no key would be stored unsealed. */
  async function findOrCreate(subjects: readonly string[]): Promise<Map<string, SubjectKey>> {
    for (let look = 0; look < looksMax; look += 1) {
      const known = await find(subjects);
      const missing = subjects.filter((subject) => !known.has(subject));
      if (missing.length === 0) return known;
      const made = await insertMissing(missing.map((_id) => ({ _id, key: newSubjectKey() })));
      // Another process's key that has not yet reached most of the servers.
      if (!made) await systemClock.sleep(5 * 2 ** look);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'keys that were made cannot be read', {
      details: { subjects: subjects.length },
    });
  }

  async function forget(subject: string, forgottenAt: Date): Promise<boolean> {
    for (let look = 0; look < looksMax; look += 1) {
      const withKey = { _id: subject, key: { $exists: true } };
      const had = await collection.findOneAndReplace(withKey, { forgottenAt });
      if (had !== null) return true;
      // Nobody knew the person: from now on nobody can.
      if (await insertMissing([{ _id: subject, forgottenAt }])) return false;
      if ((await find([subject])).get(subject)?.kind === 'forgotten') return false;
      await systemClock.sleep(5 * 2 ** look);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'a key could not be destroyed');
  }

  const reached = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw unavailable(error);
    }
  };

  return {
    // A key that sealed something is on most of the servers: a primary has it, though it may not yet
    // know of that. A key to seal with must not be taken back.
    get: (subjects, { create }) =>
      reached(create ? findOrCreate(subjects) : find(subjects, 'local')),
    forget: (subject, nowMs) => reached(forget(subject, new Date(nowMs))),
  };
}

function toKey({ key, forgottenAt }: KeyDocument): SubjectKey {
  return key === undefined
    ? { kind: 'forgotten', forgottenAtMs: forgottenAt?.getTime() ?? 0 }
    : { kind: 'key', key };
}
