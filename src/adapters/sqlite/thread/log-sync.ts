// When commits reach the disk: before anybody sees them, or right behind. Both are of one log, whose order is
// that of the commits: what is synced later never outlives what was before it.

import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';

export interface SqliteLogSync {
  /** For the transaction that comes. */
  beforeSeen(): void;
  /** For the transaction that comes: everybody sees it once it is committed; then `sync`. */
  afterSeen(): void;
  sync(): void;
  close(): void;
}

export function createSqliteLogSync(database: DatabaseSync, path: string): SqliteLogSync {
  let level: 'full' | 'normal' = 'full';
  let log: number | undefined;

  function use(wanted: typeof level): void {
    if (level === wanted) return;
    database.exec(`pragma synchronous = ${wanted}`);
    level = wanted;
  }

  return {
    beforeSeen: () => use('full'),
    afterSeen: () => use('normal'),
    sync() {
      // SQLite keeps the file as long as somebody has the database open, and locks nothing in it.
      log ??= openSync(`${path}-wal`, 'r+');
      fdatasyncSync(log);
    },
    close() {
      if (log !== undefined) closeSync(log);
      log = undefined;
    },
  };
}
