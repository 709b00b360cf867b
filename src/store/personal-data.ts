// Encrypts copies of personal data outside of the events, in messages and jobs, with the keys of the event store:
// `forget` makes them unreadable in every stream, dead letter, archive and backup.

import { hasCode } from '../foundation/error.ts';
import { forgottenValue, seal, unseal, type SubjectKeys } from './erasure.ts';
import { checkSubject } from './prepare-append.ts';

export interface PersonalData {
  /** The encrypted JSON texts; the JSON of `Forgotten` if the subject was forgotten. The id is needed to decrypt. */
  seal(
    values: readonly { readonly subject: string; readonly id: string; readonly json: string }[],
  ): Promise<readonly string[]>;
  /**
   * The values; `Forgotten` if the subject was forgotten. A value that is not encrypted is returned unchanged, and so is
   * one that cannot be decrypted, because its key was lost or its text is damaged (`isSealed`).
   */
  unseal(
    values: readonly { readonly subject: string; readonly id: string; readonly value: unknown }[],
  ): Promise<readonly unknown[]>;
}

export function createPersonalData(subjectKeys: SubjectKeys): PersonalData {
  const keysOf = (
    values: readonly { readonly subject: string }[],
    create: boolean,
  ): ReturnType<SubjectKeys['get']> =>
    subjectKeys.get([...new Set(values.map(({ subject }) => subject))], { create });

  return {
    async seal(values) {
      for (const { subject } of values) checkSubject(subject);
      const keys = await keysOf(values, true);
      return values.map(({ subject, id, json }) => {
        const key = keys.get(subject);
        return key?.kind === 'key'
          ? seal(json, key.key, id)
          : JSON.stringify(forgottenValue(subject, key));
      });
    },
    async unseal(values) {
      const keys = await keysOf(values, false);
      return values.map(({ subject, id, value }) => {
        const key = keys.get(subject);
        // A forgotten person leaves a record, so the key was lost: that must not look like an erasure.
        if (key === undefined) return value;
        try {
          return unseal(value, { eventId: id, subject }, key);
        } catch (error) {
          // Another program wrote a value that only looks encrypted.
          if (hasCode(error, 'STORE_CORRUPT')) return value;
          throw error;
        }
      });
    },
  };
}

/** Opens the event store when the first personal data is encrypted or read. */
export function lazyPersonalData(
  open: () => Promise<{ readonly personalData: PersonalData }>,
): PersonalData {
  return {
    seal: async (values) => (await open()).personalData.seal(values),
    unseal: async (values) => (await open()).personalData.unseal(values),
  };
}
