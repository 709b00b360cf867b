// A database in memory with the interface of a file: it is written on the calling thread, and lost when it is closed.

import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { createReader } from '../store/reader.ts';
import { fromFailure, toFailure } from '../thread/failure.ts';
import { createOperations } from '../thread/operations.ts';
import type {
  Handlers,
  OperationName,
  RequestOf,
  ResultOf,
  WriterCall,
  WriterOperations,
} from '../thread/protocol.ts';
import { appendedRows, type SqliteWriter } from '../thread/writer.ts';
import type { TailRow } from '../../../store/append-tail.ts';
import type { SqliteReader } from '../store/reader.ts';
import { createSubjectKeys } from '../store/subject-keys.ts';
import { isTrueOrFails, type SqliteWatch } from './watch.ts';
import { sqliteDatabase } from './database.ts';
import { readError } from './error.ts';
import type { SqliteFile } from './file.ts';
import { migrateSqlite } from './schema.ts';

export function sqliteMemoryFile({
  clock = systemClock,
}: {
  readonly clock?: Clock | undefined;
}): SqliteFile {
  // All connections to this name share the database, and the last one to close removes it.
  const id = randomUUID();
  const path = `memory:${id}`;
  const connect = (name: 'events' | 'keys' = 'events'): DatabaseSync => {
    // Loaded here, because importing it prints a warning on Node 22.
    const { DatabaseSync: Connection } = process.getBuiltinModule('node:sqlite');
    const connection = new Connection(`file:${id}-${name}?mode=memory&cache=shared`);
    // The time of the tests; half a millisecond more, because SQLite cuts off the fraction.
    connection.function('unixepoch', { varargs: true }, () => (clock.now() + 0.5) / 1_000);
    return connection;
  };
  const database = connect();
  migrateSqlite(database);
  const operations = createOperations(database);
  const keys = createSubjectKeys(() => connect('keys'));
  const handlers: Handlers<WriterOperations> = {
    ...operations.handlers,
    ...keys.handlers,
    'log.erase': () => true,
  };
  const reader = createReader(connect());
  const watches = new Set<SqliteWatch & { readonly check: () => void }>();
  let listener: (rows: readonly TailRow[]) => void = () => undefined;
  let isClosed = false;

  const closed = (): MillraceError =>
    new MillraceError('STORE_CLOSED', 'the event store was closed');

  function execute<Name extends OperationName>(request: RequestOf<Name>): ResultOf<Name> {
    return handlers[request.operation](request);
  }

  async function call<Call extends WriterCall>(
    request: Call,
    onCommitted?: (result: ResultOf<Call['operation']>) => void,
  ): Promise<ResultOf<Call['operation']>> {
    if (isClosed) throw closed();
    try {
      database.exec('begin immediate');
      operations.begin();
      const result = execute<Call['operation']>(request);
      database.exec('commit');
      // In separate microtasks: after the commit, no error of a reader may fail the request.
      queueMicrotask(() => onCommitted?.(result));
      for (const { check } of watches) queueMicrotask(check);
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('rollback');
      operations.clearCaches();
      throw fromFailure(toFailure(error), path);
    }
  }

  const writer: SqliteWriter = {
    appending: 0,
    append: (writes, nowMs, inline) =>
      call({ operation: 'store.append', writes, nowMs, inline }, (outcomes) =>
        listener(appendedRows(writes, nowMs, outcomes).flat()),
      ),
    run: (statements) => call({ operation: 'sql.run', statements }),
    call,
    [Symbol.asyncDispose]: async () => undefined,
  };

  async function reading<T>(read: (from: SqliteReader) => T): Promise<Awaited<T>> {
    if (isClosed) throw closed();
    try {
      return await read(reader);
    } catch (error) {
      throw readError(error, path);
    }
  }

  return {
    path,
    busyTimeoutMs: 0,
    isDurable: false,
    writer,
    reader,
    reading,
    connect,
    connectKeys: () => connect('keys'),
    watch({ hasMore, onMore }) {
      let isWaiting = false;
      const watch = {
        check() {
          if (isWaiting && isTrueOrFails(hasMore)) onMore();
        },
        setWaiting(next: boolean) {
          isWaiting = next;
        },
        close: () => void watches.delete(watch),
      };
      watches.add(watch);
      return watch;
    },
    checkFile: () => undefined,
    database: sqliteDatabase(writer, reading),
    onAppended(next) {
      listener = next;
    },
    async [Symbol.asyncDispose]() {
      if (isClosed) return;
      isClosed = true;
      reader.close();
      keys.close();
      database.close();
    },
  };
}
