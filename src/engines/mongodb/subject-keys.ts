// The encryption keys of data subjects. A key is only inserted, or replaced by the record that it was forgotten,
// so that no interleaving of two processes restores a key.

import type { Collection } from 'mongodb';
import { convertErrors, MillraceError } from '../../foundation/error.ts';
import { newSubjectKey } from '../../store/erasure.ts';
import type { SubjectKey, SubjectKeys } from '../../store/erasure.ts';
import { isDuplicate, majorityWait, unavailable } from './connection.ts';
import type { KeyDocument } from './collections.ts';

export function createMongodbKeys(collection: Collection<KeyDocument>): SubjectKeys {
  /** Inserts documents and keeps existing ones; returns false if at least one existed. */
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

  /** Always returns a key for every subject: without a key, a payload would be stored in plain text. */
  async function findOrCreate(subjects: readonly string[]): Promise<Map<string, SubjectKey>> {
    for (let attempt = 0; attempt < majorityWait.attemptsMax; attempt += 1) {
      const known = await find(subjects);
      const missing = subjects.filter((subject) => !known.has(subject));
      if (missing.length === 0) return known;
      const inserted = await insertMissing(missing.map((_id) => ({ _id, key: newSubjectKey() })));
      // Another process inserted a key that has not reached a majority yet.
      if (!inserted) await majorityWait.sleep(attempt);
    }
    throw new MillraceError(
      'STORE_UNAVAILABLE',
      'subject keys did not become readable on a majority of the servers',
      { details: { subjects: subjects.length } },
    );
  }

  async function forget(subject: string, forgottenAt: Date): Promise<boolean> {
    for (let attempt = 0; attempt < majorityWait.attemptsMax; attempt += 1) {
      const withKey = { _id: subject, key: { $exists: true } };
      const had = await collection.findOneAndReplace(withKey, { forgottenAt });
      if (had !== null) return true;
      // The subject has no key: the record prevents that one is created later.
      if (await insertMissing([{ _id: subject, forgottenAt }])) return false;
      if ((await find([subject])).get(subject)?.kind === 'forgotten') return false;
      await majorityWait.sleep(attempt);
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'the subject key could not be deleted');
  }

  return {
    // A key in use has reached a majority, so the primary has it; a local read is enough. A key for encryption
    // must be one that no election can roll back.
    get: (subjects, { create }) =>
      convertErrors(() => (create ? findOrCreate(subjects) : find(subjects, 'local')), unavailable),
    forget: (subject, nowMs) => convertErrors(() => forget(subject, new Date(nowMs)), unavailable),
  };
}

function toKey({ key, forgottenAt }: KeyDocument): SubjectKey {
  return key === undefined
    ? { kind: 'forgotten', forgottenAtMs: forgottenAt?.getTime() ?? 0 }
    : { kind: 'key', key };
}
