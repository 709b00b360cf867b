// The operations of a database that change it, for one transaction at a time.

import type { DatabaseSync } from 'node:sqlite';
import { documentsToWrite, hasMoved } from '../../../projections/inline-appends.ts';
import { isRejected } from '../../../store/expected-revision.ts';
import { SqlExpectationFailed } from '../../../store/sql-database.ts';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import { createBusHandlers } from '../bus/writer.ts';
import { createDocuments } from '../read-models/documents.ts';
import { createAppender, type Appender } from '../store/appender.ts';
import type { KeyOperations } from '../store/subject-keys.ts';
import { createTaskWriter } from '../tasks/writer.ts';
import {
  createSqlQuery,
  type EraseOperations,
  type Handlers,
  type InlineWrites,
  type SqlRow,
  type SqlStatement,
  type WriterOperations,
} from './protocol.ts';

export interface Operations {
  readonly handlers: Handlers<Omit<WriterOperations, keyof EraseOperations | keyof KeyOperations>>;
  /** Call it at the start of each transaction: another process may have changed what is cached. */
  readonly begin: () => void;
  readonly appendOne: Appender['one'];
  /** Call it after a rollback. */
  readonly clearCaches: () => void;
}

export function createOperations(database: DatabaseSync): Operations {
  const appender = createAppender(database);
  const documents = createDocuments(database);
  const bus = createBusHandlers(database);
  const tasks = createTaskWriter(database, bus);
  const { all } = createSqlQuery(database);

  return {
    handlers: {
      ...bus,
      ...tasks.handlers,
      ...documents.handlers,
      'store.append': ({ writes, nowMs, inline }) =>
        inline === undefined
          ? appender.together(writes, nowMs)
          : appendInline(writes, nowMs, inline),
      'sql.run': ({ statements }) => statements.map(runStatement),
    },
    begin: () => appender.begin(),
    appendOne: (write, nowMs) => appender.one(write, nowMs),
    clearCaches() {
      appender.clearCache();
      documents.clearCache();
      tasks.clearCache();
    },
  };

  /** Writes the events together with their documents, or nothing if the documents were computed for other revisions. */
  function appendInline(
    writes: readonly StreamWrite[],
    nowMs: number,
    inline: InlineWrites,
  ): readonly WriteOutcome[] | 'moved' {
    database.exec('savepoint inline');
    const outcomes = appender.together(writes, nowMs);
    const isMoved =
      !outcomes.some(isRejected) &&
      (hasMoved(inline.revisions, outcomes) ||
        documentsToWrite(inline.documents, writes, outcomes).some((each) =>
          documents.handlers['documents.write'](each).includes('foreign'),
        ));
    if (isMoved) {
      database.exec('rollback to inline');
      appender.clearCache();
      documents.clearCache();
    }
    database.exec('release inline');
    return isMoved ? 'moved' : outcomes;
  }

  function runStatement({ sql, values, expect }: SqlStatement): readonly SqlRow[] {
    const rows = all(sql, ...values);
    if (expect !== undefined && rows.length !== expect.rows) {
      throw new SqlExpectationFailed(expect.what);
    }
    return rows;
  }
}
