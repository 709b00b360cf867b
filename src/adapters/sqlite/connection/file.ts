// A file that is open: the thread that writes it, and the connection that reads it on this one.

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { aborted } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { sqliteDatabase, type SqliteDatabase } from './database.ts';
import { describeFailure, sqliteError } from './error.ts';
import { pathOf } from './path.ts';
import { openSqliteReader, type SqliteReader } from '../store/reader.ts';
import type { TailRow } from '../../../store/append-tail.ts';
import { startSqliteWriter, type SqliteWriter } from '../thread/writer.ts';

export interface SqliteFile extends AsyncDisposable {
  readonly path: string;
  readonly writer: SqliteWriter;
  readonly database: SqliteDatabase;
  readonly reader: SqliteReader;
  /** Its failures are ours; a read sees whatever was answered before. */
  readonly reading: <T>(
    read: (reader: SqliteReader) => T,
    signal?: AbortSignal,
  ) => Promise<Awaited<T>>;
  /** Calls the listener with the events of each append of this process; there is one listener at a time. */
  readonly onAppended: (listener: (rows: readonly TailRow[]) => void) => void;
}

export async function openSqliteFile(url: string, busyTimeoutMs: number): Promise<SqliteFile> {
  const path = pathOf(url);
  mkdirSync(dirname(path), { recursive: true });
  let listener: (rows: readonly TailRow[]) => void = () => undefined;
  const writer = await startSqliteWriter({ path, busyTimeoutMs }, (rows) => listener(rows));
  const reader = await openReader();
  let isClosed = false;

  async function openReader(): Promise<SqliteReader> {
    try {
      return openSqliteReader(path, busyTimeoutMs);
    } catch (error) {
      await writer[Symbol.asyncDispose]();
      throw readFailed(error);
    }
  }

  /** Only SQLite's own errors: what a filter throws is its author's. */
  function readFailed(error: unknown): unknown {
    const failure = describeFailure(error);
    return failure.sqliteCode === undefined ? error : sqliteError(failure, { path, doing: 'read' });
  }

  async function reading<T>(
    read: (reader: SqliteReader) => T,
    signal?: AbortSignal,
  ): Promise<Awaited<T>> {
    if (signal?.aborted === true) throw aborted(signal);
    if (isClosed) throw new MillraceError('STORE_CLOSED', 'the event store was closed');
    try {
      return await read(reader);
    } catch (error) {
      throw readFailed(error);
    }
  }

  return {
    path,
    writer,
    reader,
    reading,
    database: sqliteDatabase(writer, reading),
    onAppended(next) {
      listener = next;
    },
    async [Symbol.asyncDispose]() {
      if (!isClosed) {
        isClosed = true;
        // The reader first: the last connection to close empties the log into the file, and only the
        // writer's may.
        reader.close();
      }
      await writer[Symbol.asyncDispose]();
    },
  };
}
