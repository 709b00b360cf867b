// An append-only file, written in batches that are synced one by one. An incomplete last batch, left by a crash,
// is truncated on open. In a compressed file each batch is a gzip member.

import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32, deflateRawSync, gunzipSync } from 'node:zlib';
import { MillraceError } from '../../foundation/error.ts';
import { lineStart, openToWrite, readRange } from './file-end.ts';

export interface ArchiveFile extends AsyncDisposable {
  /** Appends lines of JSON; the lines are durable when the promise resolves. */
  append(lines: string): Promise<void>;
}

/** Magic, deflate, and an extra field: two letters and the length of the member. */
const memberStart = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3, 8, 0, 0x4d, 0x52, 4, 0]);
const memberHeaderBytes = memberStart.length + 4;

export async function openArchiveFile(path: string): Promise<ArchiveFile> {
  const file = await openToWrite(path, 'a+');
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

/** The offset after the last complete member; each contains the offset of the next one. */
async function endOfMembers(file: FileHandle, path: string): Promise<number> {
  const { size } = await file.stat();
  let last = 0;
  let end = 0;
  while (end < size) {
    const header = await readRange(file, end, Math.min(end + memberHeaderBytes, size));
    // After a crash the file may end with zeros.
    if (header.every((byte) => byte === 0)) break;
    const start = header.subarray(0, memberStart.length);
    if (!start.equals(memberStart.subarray(0, start.length))) throw foreign(path);
    const bytes = header.length < memberHeaderBytes ? 0 : header.readUInt32LE(memberStart.length);
    if (bytes === 0 || end + bytes > size) break;
    last = end;
    end += bytes;
  }
  return isWhole(await readRange(file, last, end)) ? end : last;
}

function isWhole(member: Buffer): boolean {
  try {
    if (member.length > 0) gunzipSync(member);
    return true;
  } catch {
    return false;
  }
}

/** The offset after the last complete line. */
async function endOfLines(file: FileHandle, path: string): Promise<number> {
  const { size } = await file.stat();
  const end = await lineStart(file, size);
  const start = end === 0 ? 0 : await lineStart(file, end - 1);
  const line = (await readRange(file, start, end || Math.min(size, 6))).toString();
  // Only a file that starts as an archive is continued.
  if (size > 0 && !line.startsWith('{"id":'.slice(0, line.length))) throw foreign(path);
  return end;
}

function foreign(path: string): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    `the file '${path}' is not an archive of an outbox: choose another name`,
    { details: { path } },
  );
}
