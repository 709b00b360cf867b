// As much of an SQL database as subscriptions and read models need: statements that commit together,
// and the few places in which dialects differ. Adapters bring it.

export type SqlCell = string | number | null;
export type SqlCells = readonly SqlCell[];

/** What must hold for the statements to commit: so many rows came back. */
export type SqlExpectation = 'fence' | 'new';

export interface SqlStatement {
  /** Parameters are `?1`, `?2`, …; columns come back in the order in which they are named. */
  readonly sql: string;
  readonly values: readonly SqlCell[];
  /** Otherwise nothing is committed, and `run` rejects with `SqlExpectationFailed`. */
  readonly expect?: { readonly what: SqlExpectation; readonly rows: number } | undefined;
}

export class SqlExpectationFailed extends Error {
  override readonly name = 'SqlExpectationFailed';
  readonly what: SqlExpectation;

  constructor(what: SqlExpectation) {
    super(`expected: ${what}`);
    this.what = what;
  }
}

export interface SqlDialect {
  /** `marks` → the table's full name. */
  readonly table: (name: SqlTable) => string;
  /** The database's own clock, in milliseconds. */
  readonly nowMs: string;
  /** A JSON array as rows of one column, `value`. */
  readonly values: (parameter: string) => string;
  /** A JSON array of objects as rows named `r`, with these columns. */
  readonly rows: (
    parameter: string,
    columns: Readonly<Record<string, 'text' | 'bigint' | 'double precision'>>,
  ) => string;
  /** Whether a row is among those of its own table that are selected, by its primary key or faster. */
  readonly isAmong: (primaryKey: string, tableAndWhere: string) => string;
  /** Lets others see the row but not take it over until this commits. */
  readonly shareRow: string;
  /** Waits for those who share it. */
  readonly takeRow: string;
}

type SqlTable =
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
  /** All in one transaction, in order; the rows of each. */
  readonly run: (statements: readonly SqlStatement[]) => Promise<readonly (readonly SqlCells[])[]>;
}
