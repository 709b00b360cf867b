// Files that only their owner may read: a database contains tokens' hashes, keys and personal data.

import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Only this folder belongs to Millrace; any other one may be shared on purpose. */
const ownFolder = '.millrace';

/** Creates a missing file and its folder, and removes the rights of other users from existing ones. */
export function preparePrivateFile(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (basename(folder) === ownFolder) restrict(folder, 0o700);
  try {
    // SQLite gives its log and its index the mode of the database.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
  } catch {
    // SQLite reports why the file cannot be created.
    return;
  }
  for (const file of [path, `${path}-wal`, `${path}-shm`]) restrict(file, 0o600);
}

function restrict(path: string, mode: number): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & 0o077) === 0) return;
  // The file of another user stays as it is.
  if (process.getuid?.() === found.uid) chmodSync(path, mode);
}
