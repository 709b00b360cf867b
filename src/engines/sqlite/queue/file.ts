// The file of keys and queues: one connection per process, with statements that take microseconds. It holds no source
// of truth, so SQLite syncs it at checkpoints only.

import { DatabaseSync } from 'node:sqlite';
import { describeFailure, sqliteError } from '../connection/error.ts';
import { preparePrivateFile } from '../connection/private-file.ts';
import { pathOf } from '../connection/path.ts';

/** Opens `memory:` or `sqlite:<file>`. */
export function openWorkFile(url: string): DatabaseSync {
  if (/^memory:/i.test(url)) return new DatabaseSync(':memory:');
  const path = pathOf(url);
  preparePrivateFile(path);
  try {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec('pragma journal_mode = wal; pragma synchronous = normal;');
    return database;
  } catch (error) {
    throw sqliteError(describeFailure(error), { path, doing: 'write' });
  }
}
