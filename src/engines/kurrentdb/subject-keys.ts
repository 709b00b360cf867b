// The encryption keys of data subjects: one stream per subject on the server. The newest event counts, so that no
// interleaving of two processes restores a key. Forgetting hides the key immediately; the server's next scavenge
// deletes its bytes. If that is too late, store keys elsewhere (option `keys`).

import { createHash, randomUUID } from 'node:crypto';
import { batchesOf } from '../../foundation/async/batches-of.ts';
import { MillraceError } from '../../foundation/error.ts';
import { keyStreamPrefix, newSubjectKey } from '../../store/erasure.ts';
import type { SubjectKey, SubjectKeys } from '../../store/erasure.ts';
import { isRejected } from '../../store/expected-revision.ts';
import type { StoredRow } from '../../store/recorded-event.ts';
import type { StoreEngine } from '../../store/store-engine.ts';
import type { KurrentdbConnection } from './connection.ts';
import type { KurrentdbReader } from './reader.ts';

/** Event types that begin with $ are system types, which readers skip by default. */
const keyType = '$subjectKey';
const forgottenType = '$subjectForgotten';

/** The most concurrent requests of one call. */
const inFlightMax = 32;
/** The most lost races with changes of other processes. */
const attemptsMax = 20;

export interface KeyParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  readonly write: StoreEngine['write'];
}

export function createKurrentdbKeys({ connection, reader, write }: KeyParts): SubjectKeys {
  /**
   * Appends an event after the newest one that this process has read, unless `isDone`. From the leader, because a
   * follower may not have the deletion yet.
   */
  async function change(
    stream: string,
    { type, data }: { readonly type: string; readonly data: object },
    isDone: (newest: StoredRow | undefined) => boolean,
  ): Promise<{ readonly before: StoredRow | undefined; readonly isAppended: boolean }> {
    const payload = JSON.stringify(data);
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const before = await reader.newest(stream);
      if (isDone(before)) return { before, isAppended: false };
      const rows = [{ eventId: randomUUID(), type, tenant: '', payload, meta: '{}' }];
      const [outcome] = await write([{ stream, expected: before?.revision ?? 'none', rows }], {});
      if (outcome !== undefined && !isRejected(outcome)) return { before, isAppended: true };
    }
    throw new MillraceError('STORE_UNAVAILABLE', 'too many concurrent changes of one subject key');
  }

  async function keyOf(subject: string, create: boolean): Promise<SubjectKey | undefined> {
    const stream = streamFor(subject);
    if (!create) return fromRow(await reader.newest(stream));
    const key = newSubjectKey();
    const event = { type: keyType, data: { key: Buffer.from(key).toString('base64') } };
    const { before } = await change(stream, event, (newest) => newest !== undefined);
    return fromRow(before) ?? { kind: 'key', key };
  }

  return {
    async get(subjects, { create }) {
      const found = new Map<string, SubjectKey>();
      for (const batch of batchesOf(subjects, { countMax: inFlightMax })) {
        const find = async (subject: string): Promise<void> => {
          const key = await keyOf(subject, create);
          if (key !== undefined) found.set(subject, key);
        };
        await Promise.all(batch.map(find));
      }
      return found;
    },
    async forget(subject, forgottenAtMs) {
      const stream = streamFor(subject);
      const event = { type: forgottenType, data: { forgottenAtMs } };
      const isForgotten = (row?: StoredRow): boolean => row?.type === forgottenType;
      const { before, isAppended } = await change(stream, event, isForgotten);
      // Also if the event is old: a process that crashed right after the append did not hide the key.
      const truncateBefore = (before?.revision ?? -1) + (isAppended ? 1 : 0);
      if (truncateBefore > 0) {
        await connection.use((client) => client.setStreamMetadata(stream, { truncateBefore }));
      }
      return isAppended && before !== undefined;
    },
  };
}

/** The name contains a hash, because the subject may itself be personal data. */
function streamFor(subject: string): string {
  return `${keyStreamPrefix}${createHash('sha256').update(subject, 'utf8').digest('hex')}`;
}

function fromRow(row: StoredRow | undefined): SubjectKey | undefined {
  if (row === undefined) return undefined;
  const { key, forgottenAtMs = 0 } = JSON.parse(row.payload) as {
    readonly key?: string;
    readonly forgottenAtMs?: number;
  };
  return row.type === forgottenType || key === undefined
    ? { kind: 'forgotten', forgottenAtMs }
    : { kind: 'key', key: new Uint8Array(Buffer.from(key, 'base64')) };
}
