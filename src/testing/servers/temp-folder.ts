// Folders of temporary servers, with a recognisable name and removed with their process.

import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { notifyReaper } from './reaper.ts';

/** Creates `<tmp>/millrace-<kind>-<random>`, readable by its owner only. */
export async function createTempFolder(kind: string): Promise<string> {
  const path = join(tmpdir(), `millrace-${kind}-${randomBytes(5).toString('hex')}`);
  // Register the folder before it exists, so a process that dies in between leaves no folder.
  notifyReaper({ kind: 'folder', path });
  await mkdir(path, { mode: 0o700 });
  return path;
}

/** Removes the folder with everything in it. */
export async function removeTempFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  notifyReaper({ kind: 'folder-removed', path });
}
