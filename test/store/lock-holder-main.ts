// A process that takes the write lock of a SQLite file, starts a write, and keeps the lock.

import { DatabaseSync } from 'node:sqlite';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface LockHolderInput {
  readonly path: string;
}

const { path } = childInput() as LockHolderInput;
const database = new DatabaseSync(path, { timeout: 30_000 });
database.exec('begin immediate');
database.exec(`insert into streams (name) values ('half-written')`);
tellParent('locked');
