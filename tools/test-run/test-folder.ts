// The folder for the files of servers and databases that the tests start.

import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';

const memoryDisk = '/dev/shm';
const bytesMin = 6 * 1024 ** 3;

/**
 * Puts the temporary folder of this process and its children into memory if there is enough. A killed process
 * loses nothing there, and a slow disk would make every second test wait for fsync. A TMPDIR in the
 * environment is kept.
 */
export function keepTestFilesInMemory(): void {
  if (process.env['TMPDIR'] !== undefined || !hasRoom()) return;
  const folder = mkdtempSync(`${memoryDisk}/millrace-test-`);
  // PostgreSQL runs as another user, which needs access.
  chmodSync(folder, 0o711);
  process.env['TMPDIR'] = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memoryDisk);
    return Math.min(bavail * bsize, freemem()) >= bytesMin;
  } catch {
    // Without such a disk, the temporary folder of the system is used.
    return false;
  }
}
