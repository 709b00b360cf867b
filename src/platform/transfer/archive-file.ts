// An append-only file, written in batches that are synced one by one. An incomplete batch at its end, left by a crash,
// is truncated on open. In a compressed file each batch is a gzip member.

import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32, deflateRawSync, gunzipSync } from 'node:zlib';
import { MillraceError } from '../../foundation/error.ts';

export interface ArchiveFile extends AsyncDisposable {
  /** Appends lines of JSON; durable when it resolves. */
  append(lines: string): Promise<void>;
}

const newline = 0x0a;
const blockBytes = 65_536;
/** Readable by its owner only, because payloads are not encrypted. */
const mode = 0o600;
/** Magic, deflate, and an extra field: two letters and the length of the member. */
const memberStart = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 8, 0, 0x4d, 0x52, 4, 0]);
const memberHeaderBytes = memberStart.length + 4;

export async function openArchiveFile(path: string): Promise<ArchiveFile> {
  const file = await openToAppend(path);
  const isCompressed = path.endsWith('.gz');
  try {
    const end = isCompressed ? await endOfMembers(file, path) : await endOfLines(file, path);
    await file.truncate(end);
    await syncFolder(path);
  } catch (error) {
    await file.close();
    throw error;
  }
  return {
    async append(lines) {
      await file.appendFile(isCompressed ? gzipMember(lines) : lines);
      await file.datasync();
    },
    [Symbol.asyncDispose]: () => file.close(),
  };
}

async function openToAppend(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a+', mode);
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new MillraceError('CONFIG_INVALID', `the file '${path}' cannot be written (${code})`, {
      cause: error,
      details: { path, code },
    });
  }
}

/** Syncs the directory: otherwise a synced file may be lost with its name. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function gzipMember(text: string): Buffer {
  const data = Buffer.from(text);
  const body = deflateRawSync(data);
  const member = Buffer.alloc(memberHeaderBytes + body.length + 8);
  memberStart.copy(member);
  member.writeUInt32LE(member.length, memberStart.length);
  body.copy(member, memberHeaderBytes);
  member.writeUInt32LE(crc32(data), member.length - 8);
  member.writeUInt32LE(data.length, member.length - 4);
  return member;
}

/** The end of the last complete member; each contains the offset of the next one. */
async function endOfMembers(file: FileHandle, path: string): Promise<number> {
  const { size } = await file.stat();
  let last = 0;
  let end = 0;
  while (end < size) {
    const header = await readAt(file, end, Math.min(memberHeaderBytes, size - end));
    // After a crash the file may end with zeros.
    if (header.every((byte) => byte === 0)) break;
    const start = header.subarray(0, memberStart.length);
    if (!start.equals(memberStart.subarray(0, start.length))) throw foreign(path);
    const bytes = header.length < memberHeaderBytes ? 0 : header.readUInt32LE(memberStart.length);
    if (bytes === 0 || end + bytes > size) break;
    last = end;
    end += bytes;
  }
  return isWhole(await readAt(file, last, end - last)) ? end : last;
}

function isWhole(member: Buffer): boolean {
  try {
    if (member.length > 0) gunzipSync(member);
    return true;
  } catch {
    return false;
  }
}

/** The end of the last complete line. */
async function endOfLines(file: FileHandle, path: string): Promise<number> {
  const { size } = await file.stat();
  const end = await behindNewline(file, size);
  const start = end === 0 ? 0 : await behindNewline(file, end - 1);
  const line = (await readAt(file, start, (end || Math.min(size, 6)) - start)).toString();
  // Only a file that starts as an archive is continued.
  if (size > 0 && !line.startsWith('{"id":'.slice(0, line.length))) throw foreign(path);
  return end;
}

async function behindNewline(file: FileHandle, end: number): Promise<number> {
  for (let high = end; high > 0; high -= blockBytes) {
    const low = Math.max(0, high - blockBytes);
    const at = (await readAt(file, low, high - low)).lastIndexOf(newline);
    if (at !== -1) return low + at + 1;
  }
  return 0;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

function foreign(path: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `the file '${path}' is not an archive of an outbox: choose another name`,
    { details: { path } },
  );
}
