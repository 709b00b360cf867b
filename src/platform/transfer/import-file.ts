// Imports from files, plain or compressed.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { MillraceError } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import { importEvents, type ImportProgress, type ImportResult } from './import-events.ts';

export interface ImportFileOptions {
  readonly signal?: AbortSignal | undefined;
  /** `done` is the part of the file that was read, from 0 to 1. */
  readonly onProgress?:
    | ((progress: ImportProgress & { readonly done: number }) => void)
    | undefined;
}

const pieceBytes = 262_144;

/**
 * Imports a file that `exportToFile` wrote; decompresses one that ends in `.gz`.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { importFromFile } from 'millrace/platform';
 *
 * await using db = await openSqlite('sqlite:copy.db', { names: 'open' });
 * console.log(await importFromFile(db.store, 'events.ndjson'));
 */
export async function importFromFile(
  store: EventStore,
  path: string,
  { signal, onProgress }: ImportFileOptions = {},
): Promise<ImportResult> {
  const bytesTotal = await sizeOf(path);
  const file = createReadStream(path, { highWaterMark: pieceBytes });
  const isCompressed = path.endsWith('.gz');
  // The reader reports the error; the callback is only required.
  const source = isCompressed ? pipeline(file, createGunzip(), () => undefined) : file;
  try {
    return await importEvents(store, source as AsyncIterable<Uint8Array>, {
      signal,
      onProgress: (progress) =>
        onProgress?.({ ...progress, done: bytesTotal === 0 ? 1 : file.bytesRead / bytesTotal }),
    });
  } catch (error) {
    throw isCompressed && isZlibError(error) ? damaged(path, error) : error;
  } finally {
    file.destroy();
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (found.isFile()) return found.size;
  } catch (error) {
    throw unreadable(path, (error as NodeJS.ErrnoException).code ?? 'unknown', error);
  }
  throw unreadable(path, 'not a file');
}

function unreadable(path: string, code: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', `the file '${path}' cannot be read (${code})`, {
    cause,
    details: { path, code },
  });
}

function isZlibError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
}

function damaged(path: string, error: Error): MillraceError {
  return new MillraceError('IMPORT_INVALID', `the file '${path}' is damaged: ${error.message}`, {
    cause: error,
    details: { path },
  });
}
