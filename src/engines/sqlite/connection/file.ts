// An open file: the thread that writes it, and a connection that reads it on the calling thread.

import { MillraceError } from '../../../foundation/error.ts';
import type { TailRow } from '../../../store/append-tail.ts';
import { openReader, type SqliteReader } from '../store/reader.ts';
import { startSqliteWriter, type SqliteWriter } from '../thread/writer.ts';
import { sqliteDatabase, type SqliteDatabase, type SqliteReading } from './database.ts';
import { describeFailure, sqliteError } from './error.ts';
import { createFileCheck } from './file-identity.ts';
import { preparePrivateFile } from './private-file.ts';
import { pathOf } from './path.ts';

const busyTimeoutMsDefault = 10_000;

export interface SqliteFile extends AsyncDisposable {
  readonly path: string;
  /** How long a write waits for a write of another process. */
  readonly busyTimeoutMs: number;
  readonly writer: SqliteWriter;
  readonly database: SqliteDatabase;
  readonly reader: SqliteReader;
  /** Reads on the calling thread; a read sees every commit that was acknowledged before it. */
  readonly reading: SqliteReading;
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
  const reader = await tryOpenReader();
  const checkFile = createFileCheck(path);

  async function tryOpenReader(): Promise<SqliteReader> {
    try {
      return openReader(path, busyTimeoutMs);
    } catch (error) {
      await writer[Symbol.asyncDispose]();
      throw readError(error);
    }
  }

  /** Converts only errors of SQLite: a filter may throw any other error. */
  function readError(error: unknown): unknown {
    const failure = describeFailure(error);
    return failure.sqliteCode === undefined ? error : sqliteError(failure, { path, doing: 'read' });
  }

  async function reading<T>(read: (reader: SqliteReader) => T): Promise<Awaited<T>> {
    if (isClosed) throw new MillraceError('STORE_CLOSED', 'the event store was closed');
    checkFile();
    try {
      return await read(reader);
    } catch (error) {
      throw readError(error);
    }
  }

  return {
    path,
    busyTimeoutMs,
    writer,
    reader,
    reading,
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
