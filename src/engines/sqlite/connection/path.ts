// Resolves a URL of SQLite to the path of its file.

import { urlParts } from '../../../contracts/engine-url.ts';

/** Also accepts a path alone. */
export function pathOf(url: string): string {
  const hasScheme = /^[a-z][a-z0-9+.-]+:/i.test(url);
  return urlParts(hasScheme ? url : `sqlite:${url}`, 'url', 'sqlite').path;
}

/** Identifies the database of a file, however its URL was written. */
export function databaseOf(path: string): string {
  return `sqlite:${path}`;
}
