// The encryption keys of data subjects: one stream per subject on the server. The newest event counts, so that no
// interleaving of two processes restores a key. Forgetting hides the key immediately; the server's next scavenge
// deletes its bytes. If that is too late, store keys elsewhere (option `keys`).

import { createHash, randomUUID } from 'node:crypto';
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

/** The most concurrent requests. */
const inFlightMax = 32;
/** The most lost races with changes of other processes. */
const attemptsMax = 20;

export interface KeyParts {
  readonly connection: KurrentdbConnection;
  readonly reader: KurrentdbReader;
  readonly write: StoreEngine['write'];
}

export function createKurrentdbKeys({ connection, reader, write }: KeyParts): SubjectKeys {
  /** Only forgotten subjects are cached, because that is final; a key may be forgotten later. */
  const forgotten = new Map<string, SubjectKey>();
  const forgottenMax = 10_000;

  /** From the leader, because a follower may not have the deletion yet. */
  async function latest(stream: string): Promise<Stored | undefined> {
    const row = await reader.newest(stream);
    return row === undefined ? undefined : fromRow(row);
  }

  /** Returns false if another process changed the stream first. */
  async function append(
    stream: string,
    event: { readonly type: string; readonly data: object },
    after: number,
  ): Promise<boolean> {
    const payload = JSON.stringify(event.data);
    const row = { eventId: randomUUID(), type: event.type, tenant: '', payload, meta: '{}' };
    const expected = after === -1 ? 'none' : after;
    const [outcome] = await write([{ stream, expected, rows: [row] }], {});
    return outcome !== undefined && !isRejected(outcome);
  }

  async function getOne(subject: string, create: boolean): Promise<SubjectKey | undefined> {
    const known = forgotten.get(subject);
    if (known !== undefined) return known;
    const stream = streamFor(subject);
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const stored = await latest(stream);
      if (stored !== undefined) {
        if (stored.key.kind === 'forgotten') remember(subject, stored.key);
        return stored.key;
      }
      if (!create) return undefined;
      const key = newSubjectKey();
      const event = { type: keyType, data: { key: Buffer.from(key).toString('base64') } };
      if (await append(stream, event, -1)) return { kind: 'key', key };
    }
    throw contended();
  }

  function remember(subject: string, key: SubjectKey): void {
    if (forgotten.size >= forgottenMax) forgotten.clear();
    forgotten.set(subject, key);
  }

  async function forget(subject: string, forgottenAtMs: number): Promise<boolean> {
    const stream = streamFor(subject);
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const stored = await latest(stream);
      if (stored?.key.kind === 'forgotten') {
        // A process that crashed right after the append did not hide the key.
        if (stored.revision > 0) await hideBelow(stream, stored.revision);
        return false;
      }
      const revision = stored?.revision ?? -1;
      const event = { type: forgottenType, data: { forgottenAtMs } };
      if (!(await append(stream, event, revision))) continue;
      if (stored !== undefined) await hideBelow(stream, revision + 1);
      return stored !== undefined;
    }
    throw contended();
  }

  async function hideBelow(stream: string, truncateBefore: number): Promise<void> {
    await connection.use((client) => client.setStreamMetadata(stream, { truncateBefore }));
  }

  return {
    async get(subjects, { create }) {
      const found = new Map<string, SubjectKey>();
      const left = subjects.values();
      const work = async (): Promise<void> => {
        for (const subject of left) {
          const key = await getOne(subject, create);
          if (key !== undefined) found.set(subject, key);
        }
      };
      await Promise.all(Array.from({ length: Math.min(inFlightMax, subjects.length) }, work));
      return found;
    },
    forget,
  };
}

interface Stored {
  readonly revision: number;
  readonly key: SubjectKey;
}

/** The name contains a hash, because the subject may itself be personal data. */
function streamFor(subject: string): string {
  return `${keyStreamPrefix}${createHash('sha256').update(subject, 'utf8').digest('hex')}`;
}

function fromRow({ type, revision, payload }: StoredRow): Stored {
  const { key, forgottenAtMs } = JSON.parse(payload) as {
    readonly key?: string;
    readonly forgottenAtMs?: number;
  };
  return {
    revision,
    key:
      type === forgottenType || key === undefined
        ? { kind: 'forgotten', forgottenAtMs: forgottenAtMs ?? 0 }
        : { kind: 'key', key: new Uint8Array(Buffer.from(key, 'base64')) },
  };
}

function contended(): MillraceError {
  return new MillraceError('STORE_UNAVAILABLE', 'too many concurrent changes of one subject key');
}
