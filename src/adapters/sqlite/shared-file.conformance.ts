// A file for the cases of a suite, one after the other: starting the writer thread is most of the time of a case.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteFile, type SqliteFile } from './connection/file.ts';

export interface SharedSqliteFile extends AsyncDisposable {
  readonly file: SqliteFile;
  /** Brings every table back to what it was when the file was new, except those that are kept. */
  reset(): void;
}

export async function openSharedSqliteFile(
  folder: string,
  busyTimeoutMs: number,
  kept: readonly string[] = [],
): Promise<SharedSqliteFile> {
  const file = await openSqliteFile(join(folder, `${randomUUID()}.db`), busyTimeoutMs);
  const database = new DatabaseSync(file.path, { enableForeignKeyConstraints: false });
  const tables = database
    .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
    .all()
    .filter(({ name }) => !kept.includes(String(name)))
    .map(({ name }) => `"${String(name)}"`);
  for (const table of tables) {
    database.exec(`create temp table ${table} as select * from main.${table}`);
  }
  return {
    file,
    reset() {
      database.exec('begin immediate');
      for (const table of tables) {
        database.exec(`delete from main.${table}`);
        database.exec(`insert into main.${table} select * from temp.${table}`);
      }
      database.exec('delete from main.sqlite_sequence');
      database.exec('commit');
    },
    async [Symbol.asyncDispose]() {
      database.close();
      await file[Symbol.asyncDispose]();
    },
  };
}
