// The messages between the calling thread and the writer thread, and the statements that both threads run.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import type { SqlExpectation } from '../../../store/sql-database.ts';
import type { BusOperations } from '../bus/writer.ts';
import type { DocumentOperations, ModelWrites } from '../read-models/documents.ts';
import type { KeyOperations } from '../store/subject-keys.ts';
import type { TaskOperations } from '../tasks/writer.ts';
import type { WriterFailure } from './failure.ts';

/** A value that SQLite stores. */
export type SqlValue = string | number | null | Uint8Array;

export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** With another number of rows, the request fails with `SqlExpectationFailed` and commits nothing. */
  readonly expect?: { readonly what: SqlExpectation; readonly rows: number } | undefined;
  readonly isHousekeeping?: boolean | undefined;
}

/** The statements of one connection. */
export interface SqlQuery {
  readonly all: (sql: string, ...values: readonly SqlValue[]) => readonly SqlRow[];
  readonly one: (sql: string, ...values: readonly SqlValue[]) => SqlRow | undefined;
  /** Reads one row after the other. */
  readonly each: (sql: string, ...values: readonly SqlValue[]) => Iterable<SqlRow>;
  /** Returns the first cell of the first row; 0 if there is no row. */
  readonly number: (sql: string, ...values: readonly SqlValue[]) => number;
}

/** Prepares each statement once. */
export function createSqlQuery(database: DatabaseSync): SqlQuery {
  const prepared = new Map<string, StatementSync>();

  const prepare = (sql: string): StatementSync => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      prepared.set(sql, statement);
    }
    return statement;
  };
  const all: SqlQuery['all'] = (sql, ...values) =>
    prepare(sql).all(...values) as unknown as readonly SqlRow[];
  const one: SqlQuery['one'] = (sql, ...values) => all(sql, ...values)[0];
  return {
    all,
    one,
    each: (sql, ...values) => prepare(sql).iterate(...values) as unknown as Iterable<SqlRow>,
    number: (sql, ...values) => Number(Object.values(one(sql, ...values) ?? { none: 0 })[0] ?? 0),
  };
}

/** Documents that are committed together with an append. */
export interface InlineWrites {
  /** The stream revisions for which the documents were computed; at other revisions the append returns `moved`. */
  readonly revisions: readonly number[];
  readonly documents: readonly ModelWrites[];
}

/** The input and the result of an operation. */
export interface Operation<Input extends object, Result> {
  readonly input: Input;
  readonly result: Result;
}

interface StoreOperations {
  readonly 'store.append': Operation<
    {
      readonly writes: readonly StreamWrite[];
      readonly nowMs: number;
      readonly inline?: InlineWrites | undefined;
    },
    readonly WriteOutcome[] | 'moved'
  >;
  /** Runs all statements in one commit and returns the rows of each. */
  readonly 'sql.run': Operation<
    { readonly statements: readonly SqlStatement[] },
    readonly (readonly SqlRow[])[]
  >;
}

export interface EraseOperations {
  /** Removes deleted content from the log of the file. */
  readonly 'log.erase': Operation<object, true>;
}

/** Every operation of the writer thread. */
export interface WriterOperations
  extends
    StoreOperations,
    DocumentOperations,
    BusOperations,
    TaskOperations,
    KeyOperations,
    EraseOperations {}

export type OperationName = keyof WriterOperations;
export type ResultOf<Name extends OperationName> = WriterOperations[Name]['result'];

export type RequestOf<Name extends OperationName> = {
  readonly operation: Name;
} & WriterOperations[Name]['input'];

/** A request without its id: the union over all operations. */
export type WriterCall = { readonly [Name in OperationName]: RequestOf<Name> }[OperationName];
export type WriterRequest = WriterCall & { readonly id: number };

/** The functions that implement a part of the operations. */
export type Handlers<
  Operations extends { [Name in keyof Operations]: Operation<object, unknown> },
> = {
  readonly [Name in keyof Operations]: (
    input: Operations[Name]['input'],
  ) => Operations[Name]['result'];
};

/**
 * A message to the writer thread: requests in the order of the calls. A plain append is a string (packed-append.ts);
 * the strings of consecutive plain appends are joined.
 */
export type MessageToWriter =
  | readonly (string | WriterRequest)[]
  | { readonly kind: 'open'; readonly settings: WriterSettings }
  | { readonly kind: 'close' };

export type WriterReply =
  | { readonly id: number; readonly ok: true; readonly result: ResultOf<OperationName> }
  | { readonly id: number; readonly ok: false; readonly failure: WriterFailure };

export type MessageFromWriter =
  | { readonly kind: 'opened' }
  | { readonly kind: 'open-failed'; readonly failure: WriterFailure }
  | { readonly kind: 'closed' }
  /** All replies of one commit; `outcomes` are those of plain appends, packed as numbers. */
  | {
      readonly kind: 'replies';
      readonly outcomes: readonly number[];
      readonly replies: readonly WriterReply[];
    };

export interface WriterSettings {
  readonly path: string;
  readonly busyTimeoutMs: number;
}
