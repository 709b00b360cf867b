// Where the tests keep the files of their servers and databases.

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';

const memoryDisk = '/dev/shm';
const bytesMin = 6 * 1024 ** 3;

/**
 * Lets everything that this process and its children put into the temporary folder lie in memory,
 * where there is enough: a crash of a process loses nothing there either, and a slow disk would
 * make every second test wait for fsync. Respects a TMPDIR that somebody chose.
 */
export function keepTestFilesInMemory(): void {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return;
  const folder = mkdtempSync(`${memoryDisk}/millrace-test-`);
  // PostgreSQL runs as a user of its own and has to get through.
  chmodSync(folder, 0o711);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memoryDisk);
    return Math.min(bavail * bsize, freemem()) >= bytesMin;
  } catch {
    // No such disk here: the system's temporary folder serves as well.
    return false;
  }
}
