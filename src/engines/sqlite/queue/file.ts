// The file of keys and queues: one connection per process, with statements that take microseconds. It holds no source
// of truth, so SQLite syncs it at checkpoints only.

import type { DatabaseSync } from 'node:sqlite';
import { describeFailure, sqliteError } from '../connection/error.ts';
import { preparePrivateFile } from '../connection/private-file.ts';
import { pathOf } from '../connection/path.ts';

/** Opens `memory:` or `sqlite:<file>`. */
export function openWorkFile(url: string): DatabaseSync {
  // Loaded here, because importing it prints a warning on Node 22.
  const sqlite = process.getBuiltinModule('node:sqlite');
  if (/^memory:/i.test(url)) return new sqlite.DatabaseSync(':memory:');
  const path = pathOf(url);
  preparePrivateFile(path);
  try {
    const database = new sqlite.DatabaseSync(path, { timeout: 5_000 });
    database.exec('pragma journal_mode = wal; pragma synchronous = normal;');
    return database;
  } catch (error) {
    throw sqliteError(describeFailure(error), { path, doing: 'write' });
  }
}
