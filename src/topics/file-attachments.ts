// Files that messages carry: the port, and a store in a folder. There a file has the id of its message, and a
// second file describes it. The description is written last: a file without one is incomplete. The file of a user is
// encrypted with a random key, which the description contains, encrypted with the key of the user.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import { isForgotten, isSealed } from '../store/erasure.ts';
import type { PersonalData } from '../store/personal-data.ts';
import { ntfyError } from './ntfy-problems.ts';
import { isMessageId } from './topic-message.ts';

export interface AttachmentFacts {
  readonly name: string;
  readonly type: string;
  /** The visitor whose quota it counts against. */
  readonly owner: string;
  readonly expiresAtMs: number;
  /** The person who uploaded the file. Absent: a visitor without credentials. */
  readonly subject?: string | undefined;
}

export interface StoredAttachment extends AttachmentFacts {
  readonly id: string;
  readonly size: number;
  /** The key of an encrypted content. */
  readonly key?: string | undefined;
}

export interface AttachmentStore {
  /** Files with a subject are encrypted with the key of the subject. */
  readonly isPersonal: boolean;
  /** Undefined: the content is larger than `bytesMax`, and nothing was stored. */
  write(
    id: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly facts: AttachmentFacts; readonly bytesMax: number },
  ): Promise<number | undefined>;
  /** Undefined: unknown, expired, or the person who uploaded it was forgotten. */
  find(id: string): Promise<StoredAttachment | undefined>;
  /** The content of a file that `find` returned. */
  read(file: StoredAttachment): AsyncIterable<Uint8Array>;
  remove(ids: readonly string[]): Promise<void>;
  /** Bytes of files that have not expired. */
  usage(owner: string): Promise<{ readonly owned: number; readonly total: number }>;
  /** Removes expired and incomplete files. */
  sweep(): Promise<number>;
}

const algorithm = 'aes-256-ctr';
const keyBytes = 32;
/** Each key encrypts one file, so every file may start with the same counter. */
const firstCounter = Buffer.alloc(16);
const unfinishedMsMax = 3_600_000;
/** Files of other processes count against quotas after this delay at the latest. */
const listedMs = 5_000;

/** What a description says about the content; encrypted if the file has a subject. */
type ContentFacts = Pick<StoredAttachment, 'key' | 'name' | 'type'>;

interface Description extends Pick<StoredAttachment, 'expiresAtMs' | 'owner' | 'size' | 'subject'> {
  readonly content: unknown;
}

/**
 * Keeps attachments in a folder, which processes of one machine may share. With `personalData` of an event store, files of
 * users are encrypted, and `forget('notify:user:<name>')` makes them unreadable; without it they stay until they expire.
 *
 * @example
 * import { fileAttachments } from 'millrace/topics';
 * import { systemClock } from 'millrace/foundation';
 *
 * const files = fileAttachments('.millrace/attachments', systemClock);
 * console.log(await files.find('AAAAAAAAAAAA')); // undefined
 */
export function fileAttachments(
  folder: string,
  clock: Clock,
  personalData?: PersonalData,
): AttachmentStore {
  const known = new Map<string, Description>();
  let listedAtMs = -Infinity;
  const dataOf = (id: string): string => join(folder, id);
  const descriptionOf = (id: string): string => join(folder, `${id}.json`);

  async function list(): Promise<void> {
    if (clock.now() - listedAtMs < listedMs) return;
    listedAtMs = clock.now();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
    const ids = new Set(names.map((name) => name.slice(0, -'.json'.length)));
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    for (const id of ids) {
      if (known.has(id)) continue;
      const description = await readDescription(id);
      if (description !== undefined) known.set(id, description);
    }
  }

  async function readDescription(id: string): Promise<Description | undefined> {
    try {
      return JSON.parse(await readFile(descriptionOf(id), 'utf8')) as Description;
    } catch {
      // A missing and an unreadable description mean the same: there is no attachment.
      return undefined;
    }
  }

  /** Before the content is written: the key of the person is stored first. */
  async function sealed(id: string, subject: string, content: ContentFacts): Promise<unknown> {
    const json = JSON.stringify(content);
    const [text = ''] = (await personalData?.seal([{ subject, id, json }])) ?? [];
    const value: unknown = JSON.parse(text);
    if (isForgotten(value)) throw ntfyError('forbidden', 'the data of this user was erased');
    return value;
  }

  return {
    isPersonal: personalData !== undefined,
    async write(id, content, { facts, bytesMax }) {
      const { name, type, owner, expiresAtMs } = facts;
      const subject = personalData === undefined ? undefined : facts.subject;
      const key = subject === undefined ? undefined : randomBytes(keyBytes);
      const plain: ContentFacts = { name, type, key: key?.toString('base64') };
      const description = subject === undefined ? plain : await sealed(id, subject, plain);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const cipher = key && createCipheriv(algorithm, key, firstCounter);
      let size = 0;
      try {
        await using file = await open(dataOf(id), 'wx', 0o600);
        for await (const chunk of content) {
          size += chunk.length;
          if (size > bytesMax) break;
          await file.write(cipher?.update(chunk) ?? chunk);
        }
        if (size <= bytesMax) await file.sync();
      } catch (error) {
        await rm(dataOf(id), { force: true });
        throw error;
      }
      if (size > bytesMax) {
        await rm(dataOf(id), { force: true });
        return undefined;
      }
      const stored: Description = { owner, expiresAtMs, subject, size, content: description };
      await writeFile(`${descriptionOf(id)}.new`, JSON.stringify(stored), { mode: 0o600 });
      await rename(`${descriptionOf(id)}.new`, descriptionOf(id));
      known.set(id, stored);
      return size;
    },
    async find(id) {
      if (!isMessageId(id)) return undefined;
      const found = known.get(id) ?? (await readDescription(id));
      if (found === undefined || found.expiresAtMs <= clock.now()) return undefined;
      const { content: value, ...facts } = found;
      const { subject } = facts;
      if (subject === undefined) return { ...facts, ...(value as ContentFacts), id };
      const [opened] = (await personalData?.unseal([{ subject, id, value }])) ?? [];
      if (opened === undefined || isForgotten(opened) || isSealed(opened)) return undefined;
      return { ...facts, ...(opened as ContentFacts), id };
    },
    read({ id, key }) {
      const stored = createReadStream(dataOf(id));
      return key === undefined ? stored : decrypted(stored, Buffer.from(key, 'base64'));
    },
    async remove(ids) {
      for (const id of ids) {
        known.delete(id);
        await rm(descriptionOf(id), { force: true });
        await rm(dataOf(id), { force: true });
      }
    },
    async usage(owner) {
      await list();
      let owned = 0;
      let total = 0;
      for (const each of known.values()) {
        if (each.expiresAtMs <= clock.now()) continue;
        total += each.size;
        if (each.owner === owner) owned += each.size;
      }
      return { owned, total };
    },
    async sweep() {
      listedAtMs = -Infinity;
      await list();
      const expired = [...known].filter(([, { expiresAtMs }]) => expiresAtMs <= clock.now());
      await this.remove(expired.map(([id]) => id));
      for (const name of await readdir(folder)) {
        const id = name.split('.', 1)[0] ?? '';
        if (known.has(id)) continue;
        const { mtimeMs } = await stat(join(folder, name));
        if (clock.now() - mtimeMs > unfinishedMsMax) await rm(join(folder, name), { force: true });
      }
      return expired.length;
    },
  };
}

async function* decrypted(
  content: AsyncIterable<Uint8Array>,
  key: Uint8Array,
): AsyncGenerator<Uint8Array> {
  const decipher = createDecipheriv(algorithm, key, firstCounter);
  for await (const chunk of content) yield decipher.update(chunk);
}
