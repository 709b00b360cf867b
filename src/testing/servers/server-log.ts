// The log of a server: a file in its folder, across all its starts.

import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface ServerLog {
  /** Calls back with a descriptor that the server's process may inherit. */
  lend<T>(use: (descriptor: number) => T): T;
  /** Marks the beginning of another start. */
  mark(): void;
  /** The last lines, or only those since the mark. */
  lastLines(sinceMark?: 'since-mark'): string;
}

const linesMax = 40;

export function createServerLog(folder: string): ServerLog {
  const file = join(folder, 'server.log');
  let markBytes = 0;
  return {
    lend(use) {
      const descriptor = openSync(file, 'a');
      try {
        return use(descriptor);
      } finally {
        closeSync(descriptor);
      }
    },
    mark() {
      markBytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    },
    lastLines(sinceMark) {
      if (statSync(file, { throwIfNoEntry: false }) === undefined) return '';
      const text = readFileSync(file).subarray(sinceMark === undefined ? 0 : markBytes);
      return text.toString('utf8').trimEnd().split('\n').slice(-linesMax).join('\n');
    },
  };
}
