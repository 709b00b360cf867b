// Files that messages carry: the port, and a store in a folder. There a file has the id of its message, and a
// second file describes it. The description is written last: a file without one is incomplete.

import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import { isMessageId } from './topic-message.ts';

export interface AttachmentFacts {
  readonly name: string;
  readonly type: string;
  /** The visitor whose quota it counts against. */
  readonly owner: string;
  readonly expiresAtMs: number;
}

export interface StoredAttachment extends AttachmentFacts {
  readonly size: number;
}

export interface AttachmentStore {
  /** Undefined: the content is larger than `bytesMax`, and nothing was stored. */
  write(
    id: string,
    content: AsyncIterable<Uint8Array>,
    options: { readonly facts: AttachmentFacts; readonly bytesMax: number },
  ): Promise<number | undefined>;
  find(id: string): Promise<StoredAttachment | undefined>;
  read(id: string): AsyncIterable<Uint8Array>;
  remove(ids: readonly string[]): Promise<void>;
  /** Bytes of files that have not expired. */
  usage(owner: string): Promise<{ readonly owned: number; readonly total: number }>;
  /** Removes expired and incomplete files. */
  sweep(): Promise<number>;
}

const unfinishedMsMax = 3_600_000;
/** Files of other processes count against quotas after this delay at the latest. */
const listedMs = 5_000;

/**
 * Keeps attachments in a folder, which processes of one machine may share.
 *
 * @example
 * import { fileAttachments } from 'millrace/topics';
 * import { systemClock } from 'millrace/foundation';
 *
 * const files = fileAttachments('.millrace/attachments', systemClock);
 * console.log(await files.find('AAAAAAAAAAAA')); // undefined
 */
export function fileAttachments(folder: string, clock: Clock): AttachmentStore {
  const known = new Map<string, StoredAttachment>();
  let listedAtMs = -Infinity;
  const dataOf = (id: string): string => join(folder, id);
  const factsOf = (id: string): string => join(folder, `${id}.json`);

  async function list(): Promise<void> {
    if (clock.now() - listedAtMs < listedMs) return;
    listedAtMs = clock.now();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
    const ids = new Set(names.map((name) => name.slice(0, -'.json'.length)));
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    for (const id of ids) {
      if (known.has(id)) continue;
      const facts = await readFacts(id);
      if (facts !== undefined) known.set(id, facts);
    }
  }

  async function readFacts(id: string): Promise<StoredAttachment | undefined> {
    try {
      return JSON.parse(await readFile(factsOf(id), 'utf8')) as StoredAttachment;
    } catch {
      // A missing and an unreadable description mean the same: there is no attachment.
      return undefined;
    }
  }

  return {
    async write(id, content, { facts, bytesMax }) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      let size = 0;
      try {
        await using file = await open(dataOf(id), 'wx', 0o600);
        for await (const chunk of content) {
          size += chunk.length;
          if (size > bytesMax) break;
          await file.write(chunk);
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
      const stored = { ...facts, size };
      await writeFile(`${factsOf(id)}.new`, JSON.stringify(stored), { mode: 0o600 });
      await rename(`${factsOf(id)}.new`, factsOf(id));
      known.set(id, stored);
      return size;
    },
    async find(id) {
      if (!isMessageId(id)) return undefined;
      const found = known.get(id) ?? (await readFacts(id));
      return found === undefined || found.expiresAtMs <= clock.now() ? undefined : found;
    },
    read: (id) => createReadStream(dataOf(id)),
    async remove(ids) {
      for (const id of ids) {
        known.delete(id);
        await rm(factsOf(id), { force: true });
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
