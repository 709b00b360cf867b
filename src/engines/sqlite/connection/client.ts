// Shared by the bus and the tasks of a file: calls and reads with BUS or TASKS error codes, and a watch for commits.

import { closedError, MillraceError, renameError } from '../../../foundation/error.ts';
import type { ResultOf, WriterCall } from '../thread/protocol.ts';
import { describeFailure, sqliteError } from './error.ts';
import type { SqliteFile } from './file.ts';
import { watchCommits } from './watch.ts';

export interface SqliteClient extends AsyncDisposable {
  readonly isClosed: boolean;
  call<Call extends WriterCall>(call: Call): Promise<ResultOf<Call['operation']>>;
  read<T>(work: () => T): T;
  /** Enables `onCommit` while a reader or a claim waits. */
  setWaiting(isWaiting: boolean): void;
}

export type ClientFile = Omit<SqliteFile, 'database' | 'onAppended' | 'reader' | 'reading'>;

export function createSqliteClient(
  file: ClientFile,
  options: {
    readonly prefix: 'BUS' | 'TASKS';
    /** The connection that reads; closing the client closes it. */
    readonly reader: { dataVersion(): number; close(): void };
    /** Called after another connection has committed. */
    readonly onCommit: () => void;
  },
): SqliteClient {
  const { prefix, reader, onCommit } = options;
  const { path, writer, checkFile } = file;
  const watch = watchCommits(file, { reader, onCommit });
  let isClosed = false;
  const checkRenamed = (): void => {
    try {
      checkFile();
    } catch (error) {
      throw renameError(error, prefix);
    }
  };
  return {
    get isClosed() {
      return isClosed;
    },
    async call(request) {
      try {
        return await writer.call(request);
      } catch (error) {
        throw renameError(error, prefix);
      }
    },
    read(work) {
      if (isClosed) throw closedError(prefix);
      checkRenamed();
      try {
        return work();
      } catch (error) {
        if (error instanceof MillraceError) throw error;
        const failure = sqliteError(describeFailure(error), { path, doing: 'read' });
        throw renameError(failure, prefix);
      }
    },
    setWaiting: (isWaiting) => watch.setWaiting(isWaiting),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      watch.close();
      // Close the reader first: the last connection to close checkpoints the log, and a reader may not write.
      reader.close();
    },
  };
}
