// Folders of throwaway servers: recognisable by name, and gone with the process that made them.

import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tellReaper } from './reaper.ts';

/** Makes `<tmp>/millrace-<kind>-<random>`, readable by its owner only. */
export async function createTempFolder(kind: string): Promise<string> {
  const path = join(tmpdir(), `millrace-${kind}-${randomBytes(5).toString('hex')}`);
  // Told before it exists: a process that dies in between must not leave it behind.
  tellReaper({ kind: 'folder', path });
  await mkdir(path, { mode: 0o700 });
  return path;
}

/** Removes the folder with everything in it. */
export async function removeTempFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  tellReaper({ kind: 'folder-removed', path });
}
