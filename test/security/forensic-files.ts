// Finds bytes in the files of a stopped or running product.

import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';

export function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** The segments of an archive are compressed. */
function unpacked(bytes: Buffer): Buffer {
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
}

export function filesWith(folder: string, bytes: string | Uint8Array): string[] {
  return filesOf(folder)
    .filter((file) => unpacked(readFileSync(file)).includes(bytes))
    .map((file) => basename(file));
}
