// An open file: the thread that writes it, and a connection that reads it on the calling thread.

import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MillraceError } from '../../../foundation/error.ts';
import type { TailRow } from '../../../store/append-tail.ts';
import { createReader, type SqliteReader } from '../store/reader.ts';
import { subjectKeysPath } from '../store/subject-keys.ts';
import { startSqliteWriter, type SqliteWriter } from '../thread/writer.ts';
import { sqliteDatabase, type SqliteDatabase, type SqliteReading } from './database.ts';
import { readError } from './error.ts';
import { createFileCheck } from './file-identity.ts';
import { preparePrivateFile } from './private-file.ts';
import { pathOf } from './path.ts';
import { watchSqlite, type SqliteWatch, type WatchOptions } from './watch.ts';

const busyTimeoutMsDefault = 10_000;

export interface SqliteFile extends AsyncDisposable {
  readonly path: string;
  /** How long a write waits for a write of another process. */
  readonly busyTimeoutMs: number;
  /** False: the file is in memory, and belongs to this process. */
  readonly isDurable: boolean;
  readonly writer: SqliteWriter;
  readonly database: SqliteDatabase;
  readonly reader: SqliteReader;
  /** Reads on the calling thread; a read sees every commit that was acknowledged before it. */
  readonly reading: SqliteReading;
  /** Opens another connection that reads; its user closes it. */
  readonly connect: () => DatabaseSync;
  /** Opens the file of the keys to read them; undefined: it does not exist yet. */
  readonly connectKeys: () => DatabaseSync | undefined;
  /** Watches for commits of other connections. */
  readonly watch: (options: WatchOptions) => SqliteWatch;
  /** Throws if the file was removed or replaced. */
  readonly checkFile: () => void;
  /** Calls the listener with the events of each append of this process; a new listener replaces the last. */
  readonly onAppended: (listener: (rows: readonly TailRow[]) => void) => void;
}

/** Creates a missing file and its folder, and starts the writer thread. */
export async function openSqliteFile(
  url: string,
  busyTimeoutMs = busyTimeoutMsDefault,
): Promise<SqliteFile> {
  let listener: (rows: readonly TailRow[]) => void = () => undefined;
  const path = pathOf(url);
  preparePrivateFile(path);
  const writer = await startSqliteWriter({ path, busyTimeoutMs }, (rows) => listener(rows));
  let isClosed = false;
  const connect = (): DatabaseSync =>
    new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  const reader = await tryOpenReader();
  const checkFile = createFileCheck(path);

  async function tryOpenReader(): Promise<SqliteReader> {
    try {
      return createReader(connect());
    } catch (error) {
      await writer[Symbol.asyncDispose]();
      throw readError(error, path);
    }
  }

  async function reading<T>(read: (reader: SqliteReader) => T): Promise<Awaited<T>> {
    if (isClosed) throw new MillraceError('STORE_CLOSED', 'the event store was closed');
    checkFile();
    try {
      return await read(reader);
    } catch (error) {
      throw readError(error, path);
    }
  }

  return {
    path,
    busyTimeoutMs,
    isDurable: true,
    writer,
    reader,
    reading,
    connect,
    connectKeys() {
      const keysPath = subjectKeysPath(path);
      // Another process may create the file later.
      if (!existsSync(keysPath)) return undefined;
      return new DatabaseSync(keysPath, { readOnly: true, timeout: busyTimeoutMs });
    },
    watch: (options) => watchSqlite(path, options),
    checkFile,
    database: sqliteDatabase(writer, reading),
    onAppended(next) {
      listener = next;
    },
    async [Symbol.asyncDispose]() {
      if (!isClosed) {
        isClosed = true;
        // Close the reader first: the last connection to close checkpoints the log, and a reader may not write.
        reader.close();
      }
      await writer[Symbol.asyncDispose]();
    },
  };
}
