// Cold storage in a folder: an object is a file that appears whole, under its name, or not at all.

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import type { ColdStorage } from './cold-storage.ts';

/** Readable by its owner only: the payloads are in the clear. */
const mode = 0o600;
const unfinished = '.tmp-';

/**
 * Cold storage in a folder, which is made when something is put there.
 *
 * @example
 * import { fileColdStorage } from 'millrace/bus';
 *
 * const storage = fileColdStorage('.millrace/archive');
 * for await (const name of storage.list('gbe/events/audit/')) console.log(name);
 */
export function fileColdStorage(folder: string): ColdStorage {
  const root = resolve(folder);

  function pathOf(name: string): string {
    const path = resolve(root, name);
    if (path.startsWith(root + sep)) return path;
    throw new MillraceError('BUS_INVALID', `'${name}' leads out of the archive`);
  }

  return {
    async put(name, data, { ifAbsent = false } = {}) {
      const path = pathOf(name);
      const own = join(dirname(path), `${unfinished}${randomUUID()}`);
      await mkdir(dirname(path), { recursive: true });
      try {
        await writeSynced(own, data);
        if (ifAbsent) await link(own, path);
        else await rename(own, path);
      } catch (error) {
        if (ifAbsent && isCode(error, 'EEXIST')) return false;
        throw error;
      } finally {
        await rm(own, { force: true });
      }
      await syncFolders(dirname(path), root);
      return true;
    },
    async get(name) {
      try {
        return await readFile(pathOf(name));
      } catch (error) {
        if (isCode(error, 'ENOENT')) return undefined;
        throw error;
      }
    },
    async *list(prefix) {
      const names = await namesBelow(root, '');
      yield* names.filter((name) => name.startsWith(prefix)).toSorted();
    },
    remove: (name) => rm(pathOf(name), { force: true }),
  };
}

async function writeSynced(path: string, data: Uint8Array): Promise<void> {
  await using file = await open(path, 'wx', mode);
  await file.writeFile(data);
  await file.sync();
}

/** A file that was synced is still lost when its name, or that of a folder above, was not. */
async function syncFolders(folder: string, root: string): Promise<void> {
  for (let each = folder; each.length >= root.length; each = dirname(each)) {
    await using handle = await open(each, 'r');
    await handle.sync();
  }
}

async function namesBelow(root: string, below: string): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await entriesOf(join(root, below))) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) names.push(...(await namesBelow(root, name)));
    else if (!entry.name.startsWith(unfinished)) names.push(name);
  }
  return names;
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
