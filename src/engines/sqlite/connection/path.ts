// Resolves a URL of SQLite to the path of its file.

import { resolve } from 'node:path';
import { MillraceError } from '../../../foundation/error.ts';

export function pathOf(url: string): string {
  const path = url.replace(/^sqlite:(\/\/)?/, '');
  if (path !== '' && path !== ':memory:') return resolve(path);
  throw new MillraceError(
    'CONFIG_INVALID',
    `'${url}' names no file: use sqlite:<path>, or the memory adapter for tests`,
    { details: { url } },
  );
}

/** Identifies the database of a file, however its URL was written. */
export function databaseOf(path: string): string {
  return `sqlite:${path}`;
}
