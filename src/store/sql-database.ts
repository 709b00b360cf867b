// The part of an SQL database that aggregates, subscriptions and read models need: statements that commit together,
// and the differences between dialects. Engines implement it.

export type SqlCell = string | number | null;
export type SqlCells = readonly SqlCell[];

/** Names of the row-count checks that a commit depends on. */
export type SqlExpectation = 'fence' | 'new';

export interface SqlStatement {
  /** Parameters are `?1`, `?2`, …; columns are returned in the order of the statement. */
  readonly sql: string;
  readonly values: readonly SqlCell[];
  /** With another number of rows, nothing is committed and `run` rejects with `SqlExpectationFailed`. */
  readonly expect?: { readonly what: SqlExpectation; readonly rows: number } | undefined;
  /** An engine with a single writer runs it after the statements that callers wait for. Default: false. */
  readonly isHousekeeping?: boolean | undefined;
}

export class SqlExpectationFailed extends Error {
  override readonly name = 'SqlExpectationFailed';
  readonly what: SqlExpectation;

  constructor(what: SqlExpectation) {
    super(`unmet expectation: ${what}`);
    this.what = what;
  }
}

export interface SqlDialect {
  /** The qualified name of a table. */
  readonly table: (name: SqlTable) => string;
  /** SQL expression for the database's clock, in milliseconds. */
  readonly nowMs: string;
  /** A JSON array as rows of one column, `value`. */
  readonly values: (parameter: string) => string;
  /** A JSON array of objects as rows named `r`, with these columns. */
  readonly rows: (
    parameter: string,
    columns: Readonly<Record<string, 'text' | 'bigint' | 'double precision'>>,
  ) => string;
  /** Condition that selects the rows of a subquery on the same table, by primary key or faster. */
  readonly isAmong: (primaryKey: string, tableAndWhere: string) => string;
  /** Suffix of a select: share lock, so that no other transaction changes the row until the commit. */
  readonly shareRow: string;
  /** Suffix of a select: exclusive lock, which waits for share locks. */
  readonly takeRow: string;
}

type SqlTable =
  | 'snapshots'
  | 'command_keys'
  | 'subscriptions'
  | 'subscription_shards'
  | 'subscription_marks'
  | 'subscription_blocked'
  | 'subscription_waiting'
  | 'subscription_workers'
  | 'dead_letters'
  | 'processed_events'
  | 'read_models'
  | 'read_documents'
  | 'read_indexes'
  | 'read_sets'
  | 'read_ranges'
  | 'read_generations'
  | 'read_lists'
  | 'read_versions'
  | 'saga_index'
  | 'trace_events';

export interface SqlDatabase {
  readonly dialect: SqlDialect;
  /** Runs the statements in order in one transaction and returns the rows of each. */
  readonly run: (statements: readonly SqlStatement[]) => Promise<readonly (readonly SqlCells[])[]>;
}
