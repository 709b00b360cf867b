// Appends to files whose last line a crash may have left incomplete.

import { open, type FileHandle } from 'node:fs/promises';
import { MillraceError } from '../../foundation/error.ts';

const blockBytes = 65_536;
const newline = 0x0a;
/** Readable by its owner only, because payloads are not encrypted. */
const mode = 0o600;

/** Opens a file for writing, or throws `CONFIG_INVALID` with its path. */
export async function openToWrite(path: string, flags: string): Promise<FileHandle> {
  try {
    return await open(path, flags, mode);
  } catch (error) {
    throw unwritable(path, (error as NodeJS.ErrnoException).code ?? 'unknown', error);
  }
}

export function unwritable(path: string, code: string, cause?: unknown): MillraceError {
  const reason =
    code === 'EEXIST'
      ? 'exists already: resume it, overwrite it, or choose another name'
      : `cannot be written (${code})`;
  return new MillraceError('CONFIG_INVALID', `the file '${path}' ${reason}`, {
    cause,
    details: { path, code },
  });
}

/** The offset after the last line break before `end`; 0: there is none. */
export async function lineStart(file: FileHandle, end: number): Promise<number> {
  for (let high = end; high > 0; high -= blockBytes) {
    const low = Math.max(0, high - blockBytes);
    const at = (await readRange(file, low, high)).lastIndexOf(newline);
    if (at !== -1) return low + at + 1;
  }
  return 0;
}

export async function readRange(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const length = Math.max(0, end - start);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
  return buffer.subarray(0, bytesRead);
}
