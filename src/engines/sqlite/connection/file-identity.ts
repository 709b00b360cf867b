// SQLite still reads and writes a file that was removed or replaced, and everything written is lost with the process.

import { statSync } from 'node:fs';
import { MillraceError } from '../../../foundation/error.ts';

/** Returns a check that throws once the file at the path is no longer the one that was opened. */
export function createFileCheck(path: string): () => void {
  const opened = identityOf(path);
  return () => {
    if (identityOf(path) === opened) return;
    throw new MillraceError(
      'STORE_UNAVAILABLE',
      `the file ${path} was removed or replaced while it was open: restart the process`,
      { details: { path, reason: 'removed' } },
    );
  };
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev} ${found.ino}`;
}
