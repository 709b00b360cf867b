// Resolves a URL of SQLite to the path of its file.

import { urlParts } from '../../../contracts/engine-url.ts';

export function pathOf(url: string): string {
  return urlParts(url, 'url', 'sqlite').path;
}

/** Identifies the database of a file, however its URL was written. */
export function databaseOf(path: string): string {
  return `sqlite:${path}`;
}
