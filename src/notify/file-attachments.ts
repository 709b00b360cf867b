// Attachments in a folder: the file by its message's id, and beside it what it is. The second is written
// last: without it a file is not there yet, or was left behind by a process that died.

import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import type { AttachmentStore, StoredAttachment } from './attachment-store.ts';
import { isMessageId } from './topic-message.ts';

const unfinishedMsMax = 3_600_000;
/** How long what other processes wrote may be unknown to the quotas. */
const knownMs = 5_000;

/**
 * Keeps attachments in a folder, which processes of one machine may share.
 *
 * @example
 * import { fileAttachments } from 'millrace/notify';
 * import { systemClock } from 'millrace/foundation';
 *
 * const files = fileAttachments('.millrace/attachments', systemClock);
 * console.log(await files.find('AAAAAAAAAAAA')); // undefined
 */
export function fileAttachments(folder: string, clock: Clock): AttachmentStore {
  const known = new Map<string, StoredAttachment>();
  let lookedAtMs = -Infinity;
  const dataOf = (id: string): string => join(folder, id);
  const factsOf = (id: string): string => join(folder, `${id}.json`);

  async function look(): Promise<void> {
    if (clock.now() - lookedAtMs < knownMs) return;
    lookedAtMs = clock.now();
    await mkdir(folder, { recursive: true });
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
      // Not there, or not readable: the same for whoever asks.
      return undefined;
    }
  }

  return {
    async write(id, content, { facts, bytesMax }) {
      await mkdir(folder, { recursive: true });
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
      await look();
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
      lookedAtMs = -Infinity;
      await look();
      const over = [...known].filter(([, { expiresAtMs }]) => expiresAtMs <= clock.now());
      await this.remove(over.map(([id]) => id));
      for (const name of await readdir(folder)) {
        const id = name.split('.', 1)[0] ?? '';
        if (known.has(id)) continue;
        const { mtimeMs } = await stat(join(folder, name));
        if (clock.now() - mtimeMs > unfinishedMsMax) await rm(join(folder, name), { force: true });
      }
      return over.length;
    },
  };
}
