// The files below some paths that hold code, one after the other: a tree of any size in flat memory.

import { opendir, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { MillraceError } from '../../foundation/error.ts';

const extensions = new Set(['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.mjs', '.cjs']);
const skippedFolders = new Set(['node_modules', 'dist', '.git']);

/** Paths in the order given, each folder in alphabetical order. A file is given whatever its name. */
export async function* sourceFiles(paths: readonly string[]): AsyncGenerator<string> {
  const seen = new Set<string>();
  for (const path of paths) {
    const kind = await kindOf(path);
    for await (const file of kind === 'folder' ? filesBelow(path) : [path]) {
      // Only overlapping paths give a file twice.
      if (paths.length > 1) {
        if (seen.has(file)) continue;
        seen.add(file);
      }
      yield file;
    }
  }
}

export function holdsCode(file: string): boolean {
  return extensions.has(extname(file).toLowerCase());
}

async function* filesBelow(folder: string): AsyncGenerator<string> {
  const pending = [folder];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const [folders, files]: [string[], string[]] = [[], []];
    for await (const entry of await opendir(path)) {
      // Links are not followed: they can lead in circles, or out of the tree.
      if (entry.isDirectory() && !skippedFolders.has(entry.name))
        folders.push(join(path, entry.name));
      else if (entry.isFile() && holdsCode(entry.name)) files.push(join(path, entry.name));
    }
    yield* files.toSorted();
    pending.push(...folders.toSorted().toReversed());
  }
}

async function kindOf(path: string): Promise<'folder' | 'file'> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new MillraceError('USAGE', `there is no file or folder '${path}'`, { cause });
  });
  return found.isDirectory() ? 'folder' : 'file';
}
