// The history of a client, stored outside the system under test.

import { closeSync, openSync, writeSync } from 'node:fs';
import type { HistoryEntry } from './history.ts';

export interface HistoryFile extends Disposable {
  /**
   * Returns when the operating system has the entry, so a kill of the process does not lose it. Not synced to disk:
   * the delay would hide a store that acknowledges too early.
   */
  note(entry: HistoryEntry): void;
}

/**
 * Creates the file. A restarted client needs a new file, because a kill may have cut off the last line.
 *
 * @example
 * import { openHistory } from 'millrace/testing';
 *
 * const note = () => {
 *   using history = openHistory('/tmp/writer-1.history');
 *   history.note({ kind: 'unknown', operation: 'a-1', reason: 'STORE_UNAVAILABLE' });
 * };
 */
export function openHistory(path: string): HistoryFile {
  const file = openSync(path, 'ax');
  return {
    note: (entry) => void writeSync(file, `${JSON.stringify(entry)}\n`),
    [Symbol.dispose]: () => closeSync(file),
  };
}
