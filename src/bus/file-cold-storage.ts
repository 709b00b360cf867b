// Cold storage in a folder: each object is a file that appears atomically.

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { MillraceError } from '../foundation/error.ts';
import type { ColdStorage } from './cold-storage.ts';

/** Readable by the owner only, because the payloads are not encrypted. */
const mode = 0o600;
const unfinished = '.tmp-';

/**
 * Cold storage in a folder, which is created by the first write.
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
    throw new MillraceError(
      'BUS_INVALID',
      `invalid object name '${name}': it points outside the archive folder`,
    );
  }

  return {
    async put(name, data, { ifAbsent = false } = {}) {
      const path = pathOf(name);
      const temporary = join(dirname(path), `${unfinished}${randomUUID()}`);
      await mkdir(dirname(path), { recursive: true });
      try {
        await writeSynced(temporary, data);
        if (ifAbsent) await link(temporary, path);
        else await rename(temporary, path);
      } catch (error) {
        if (ifAbsent && isCode(error, 'EEXIST')) return false;
        throw error;
      } finally {
        await rm(temporary, { force: true });
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

/** A synced file is lost if its directory entry, or that of a parent folder, is not synced. */
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
