// Exports to files: a complete file is synced, and an interrupted export can be resumed.

import { createWriteStream, existsSync } from 'node:fs';
import { rename, rm, type FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { MillraceError } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Position } from '../../store/position.ts';
import { exportEvents, type ExportOptions, type ExportProgress } from './export-events.ts';
import { positionOfLine } from './export-format.ts';
import { lineStart, openToWrite, readRange, unwritable } from './file-end.ts';

export interface ExportFileOptions extends ExportOptions {
  /** How an existing file is handled. Default: `fail`. */
  readonly existing?: 'fail' | 'resume' | 'overwrite' | undefined;
}

export interface ExportResult {
  /** Number of events that this run exported. */
  readonly events: number;
  /** The position from which the next export continues. */
  readonly position: Position;
  /** The position of the last complete event in the resumed file. */
  readonly resumedAfter?: Position;
}

/**
 * Exports the events of a store to a file, compressed if its name ends in `.gz`. To resume, use the same filter; an
 * incomplete last line is written again.
 *
 * @example
 * import { openSqlite } from 'millrace/engines/sqlite';
 * import { exportToFile } from 'millrace/platform';
 *
 * await using db = await openSqlite('sqlite:.millrace/events.db');
 * const { events } = await exportToFile(db.store, 'events.ndjson', { existing: 'resume' });
 * console.log(`${events} events more`);
 */
export async function exportToFile(
  store: EventStore,
  path: string,
  options: ExportFileOptions = {},
): Promise<ExportResult> {
  const { existing = 'fail', ...exportOptions } = options;
  let last: ExportProgress | undefined;
  const onProgress = (progress: ExportProgress): void => {
    last = progress;
    options.onProgress?.(progress);
  };
  const write = path.endsWith('.gz') ? writeCompressed : writePlain;
  const resumedAfter = await write(path, existing, (after) =>
    exportEvents(store, { ...exportOptions, onProgress, after: after ?? exportOptions.after }),
  );
  if (last === undefined)
    throw new MillraceError('STORE_CORRUPT', 'the export ended without a checkpoint');
  return {
    events: last.events,
    position: last.position,
    ...(resumedAfter === undefined ? {} : { resumedAfter }),
  };
}

type Existing = NonNullable<ExportFileOptions['existing']>;
type Pieces = (after: Position | undefined) => AsyncIterable<string>;

async function writePlain(
  path: string,
  existing: Existing,
  pieces: Pieces,
): Promise<Position | undefined> {
  const flags = { fail: 'wx', resume: 'a+', overwrite: 'w' }[existing];
  await using file = await openToWrite(path, flags);
  let after: Position | undefined;
  if (existing === 'resume') {
    const end = await findEnd(file, path);
    after = end.position;
    await file.truncate(end.bytes);
  }
  for await (const piece of pieces(after)) await file.appendFile(piece);
  // A pipe or a device cannot be synced.
  if ((await file.stat()).isFile()) await file.sync();
  return after;
}

/** A compressed file cannot be resumed, so it is renamed to its name only when complete. */
async function writeCompressed(
  path: string,
  existing: Existing,
  pieces: Pieces,
): Promise<undefined> {
  if (existing === 'resume') {
    throw new MillraceError(
      'NOT_SUPPORTED',
      `a compressed export cannot be resumed: write to a plain file, and compress it afterwards`,
      { details: { path } },
    );
  }
  if (existing === 'fail' && existsSync(path)) throw unwritable(path, 'EEXIST');
  const partial = `${path}.partial`;
  await (await openToWrite(partial, 'w')).close();
  try {
    await pipeline(pieces(undefined), createGzip(), createWriteStream(partial, { flush: true }));
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** The offset after the last complete event, and its position. */
async function findEnd(
  file: FileHandle,
  path: string,
): Promise<{ readonly bytes: number; readonly position: Position | undefined }> {
  const { size } = await file.stat();
  if (size === 0) return { bytes: 0, position: undefined };
  const end = await lineStart(file, size);
  // The file has no complete line: only a file that starts as an export is overwritten.
  const begun = '{"'.startsWith((await readRange(file, 0, 2)).toString());
  if (end === 0 && begun) return { bytes: 0, position: undefined };
  const start = await lineStart(file, end - 1);
  const line = (await readRange(file, start, end - 1)).toString();
  const position = positionOfLine(line);
  if (position === undefined) {
    throw new MillraceError('CONFIG_INVALID', `the file '${path}' does not end like an export`, {
      details: { path },
    });
  }
  // The checkpoint is the last line: it is replaced after the new events.
  return { bytes: line.startsWith('{"checkpoint"') ? start : end, position };
}
