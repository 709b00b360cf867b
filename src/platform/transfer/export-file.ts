// Exports to files: synced at the end; an interrupted export can be resumed.

import { createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm, type FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { MillraceError } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Position } from '../../store/position.ts';
import { exportEvents, type ExportOptions, type ExportProgress } from './export-events.ts';
import { positionOfLine } from './export-format.ts';

export interface ExportFileOptions extends ExportOptions {
  /** What to do with an existing file. Default: `refuse`. */
  readonly existing?: 'refuse' | 'resume' | 'overwrite' | undefined;
}

export interface ExportResult {
  /** Events of this run. */
  readonly events: number;
  /** Where the next export continues. */
  readonly position: Position;
  /** The position at the end of the resumed file. */
  readonly resumedAfter?: Position;
}

const blockBytes = 65_536;
const newline = 0x0a;
/** Readable by its owner only, because payloads are not encrypted. */
const mode = 0o600;

/**
 * Exports the events of a store to a file, compressed if its name ends in `.gz`. To resume, use the same filter; an
 * incomplete last line is written again.
 *
 * @example
 * import { exportToFile, openEventStore } from 'millrace/platform';
 *
 * await using store = await openEventStore('sqlite:.millrace/events.db');
 * const { events } = await exportToFile(store, 'events.ndjson', { existing: 'resume' });
 * console.log(`${events} events more`);
 */
export async function exportToFile(
  store: EventStore,
  path: string,
  options: ExportFileOptions = {},
): Promise<ExportResult> {
  const { existing = 'refuse', ...exportOptions } = options;
  let last: ExportProgress | undefined;
  const onProgress = (progress: ExportProgress): void => {
    last = progress;
    options.onProgress?.(progress);
  };
  const write = path.endsWith('.gz') ? writeCompressed : writePlain;
  const resumedAfter = await write(path, existing, (after) =>
    exportEvents(store, {
      ...exportOptions,
      onProgress,
      ...(after === undefined ? {} : { after }),
    }),
  );
  if (last === undefined) throw new MillraceError('STORE_CORRUPT', 'the export did not end');
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
  const flags = { refuse: 'wx', resume: 'a+', overwrite: 'w' }[existing];
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
  if (existing === 'refuse' && existsSync(path)) throw unusable(path, 'EEXIST');
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

async function openToWrite(path: string, flags: string): Promise<FileHandle> {
  try {
    return await open(path, flags, mode);
  } catch (error) {
    throw unusable(path, (error as NodeJS.ErrnoException).code ?? 'unknown', error);
  }
}

function unusable(path: string, code: string, cause?: unknown): MillraceError {
  const reason =
    code === 'EEXIST'
      ? 'exists already: resume it, overwrite it, or choose another name'
      : `cannot be written (${code})`;
  return new MillraceError('CONFIG_INVALID', `the file '${path}' ${reason}`, {
    cause,
    details: { path, code },
  });
}

/** The end of the last complete event, and the position after it. */
async function findEnd(
  file: FileHandle,
  path: string,
): Promise<{ readonly bytes: number; readonly position: Position | undefined }> {
  const { size } = await file.stat();
  if (size === 0) return { bytes: 0, position: undefined };
  const end = await lineStart(file, size);
  // Without a complete line: only a file that starts as an export is overwritten.
  const begun = '{"'.startsWith(await readRange(file, 0, Math.min(2, size)));
  if (end === 0 && begun) return { bytes: 0, position: undefined };
  const start = await lineStart(file, end - 1);
  const line = await readRange(file, start, end - 1);
  const position = positionOfLine(line);
  if (position === undefined) {
    throw new MillraceError('CONFIG_INVALID', `the file '${path}' does not end like an export`, {
      details: { path },
    });
  }
  // The checkpoint is the last line: it is replaced after the new events.
  return { bytes: line.startsWith('{"checkpoint"') ? start : end, position };
}

/** The end of the last line before `end`. */
async function lineStart(file: FileHandle, end: number): Promise<number> {
  const block = Buffer.alloc(blockBytes);
  for (let high = end; high > 0; high -= blockBytes) {
    const low = Math.max(0, high - blockBytes);
    const { bytesRead } = await file.read(block, 0, high - low, low);
    const at = block.subarray(0, bytesRead).lastIndexOf(newline);
    if (at !== -1) return low + at + 1;
  }
  return 0;
}

async function readRange(file: FileHandle, start: number, end: number): Promise<string> {
  const bytes = Buffer.alloc(Math.max(0, end - start));
  await file.read(bytes, 0, bytes.length, start);
  return bytes.toString('utf8');
}
