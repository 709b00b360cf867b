// The messages between the calling thread and the writer thread, typed once for both ends.

import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import type { SqlExpectation } from '../../../store/sql-database.ts';
import type { BusOperations } from '../bus/writer.ts';
import type { DocumentOperations, ModelWrites } from '../read-models/documents.ts';
import type { TaskOperations } from '../tasks/writer.ts';
import type { WriterFailure } from './failure.ts';

/** Values that SQLite stores. */
export type SqlValue = string | number | null | Uint8Array;

export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** With another number of rows, nothing of the request is committed: `SqlExpectationFailed`. */
  readonly expect?: { readonly what: SqlExpectation; readonly rows: number } | undefined;
}

/** Documents that are committed together with an append. */
export interface InlineWrites {
  /** The revisions that the documents were computed for; with others, the append returns `moved`. */
  readonly revisions: readonly number[];
  readonly documents: readonly ModelWrites[];
}

/** What an operation takes and what it returns. */
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

/** Every operation of the writer thread. */
export interface WriterOperations
  extends StoreOperations, DocumentOperations, BusOperations, TaskOperations {}

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
 * To the thread: requests in the order in which they were made. A plain append is text (packed-append.ts); the
 * texts of consecutive plain appends are joined.
 */
export type MessageToWriter = readonly (string | WriterRequest)[] | { readonly kind: 'close' };

export type WriterReply =
  | { readonly id: number; readonly ok: true; readonly result: ResultOf<OperationName> }
  | { readonly id: number; readonly ok: false; readonly failure: WriterFailure };

export type MessageFromWriter =
  | { readonly kind: 'opened' }
  | { readonly kind: 'open-failed'; readonly failure: WriterFailure }
  /** Visible to all readers, not yet synced to disk; `replies` with the same ids follow. */
  | { readonly kind: 'committed'; readonly replies: readonly WriterReply[] }
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
