// One file for all cases of a suite: starting a writer thread takes most of the time of a case.

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteFile, type SqliteFile } from '../../../engines/sqlite/connection/file.ts';

export interface SharedSqliteFile extends AsyncDisposable {
  readonly file: SqliteFile;
  /** Resets every table, except the kept ones, to its content when the file was new. */
  reset(): void;
}

export async function openSharedSqliteFile(
  folder: string,
  busyTimeoutMs: number,
  kept: readonly string[] = [],
): Promise<SharedSqliteFile> {
  const file = await openSqliteFile(join(folder, `${randomUUID()}.db`), busyTimeoutMs);
  const database = new DatabaseSync(file.path, {
    timeout: 30_000,
    enableForeignKeyConstraints: false,
  });
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
