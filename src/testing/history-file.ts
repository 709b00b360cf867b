// A client's own history, outside of the system under test.

import { closeSync, openSync, writeSync } from 'node:fs';
import type { HistoryEntry } from './history.ts';

export interface HistoryFile extends Disposable {
  /**
   * Returns when the system has the entry, where no kill of the process can reach it. Only the loss
   * of the whole machine could; and waiting for the disk would give a store that acknowledges too
   * early the time to catch up, before the acknowledgement is noted.
   */
  note(entry: HistoryEntry): void;
}

/**
 * Creates the file; a client that is started again begins another one, as a kill may have cut off
 * the last line of this one.
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
