// The part of Emmett's API that this benchmark uses; its types are not installed with the repository.

export interface EmmettMessage {
  readonly type: string;
  readonly data: { readonly number: number; readonly amount: number };
  readonly metadata: { readonly streamName: string };
}

export interface EmmettStore {
  appendToStream(
    stream: string,
    events: readonly object[],
    options: { readonly expectedStreamVersion: bigint },
  ): Promise<unknown>;
  readStream(stream: string): Promise<{ readonly events: readonly EmmettMessage[] }>;
  aggregateStream<State>(
    stream: string,
    options: {
      readonly initialState: () => State;
      readonly evolve: (state: State, event: EmmettMessage) => State;
    },
  ): Promise<{ readonly state: State }>;
  consumer(options: {
    readonly pulling: { readonly batchSize: number; readonly pullingFrequencyInMs: number };
  }): EmmettConsumer;
  readonly schema: { migrate(): Promise<unknown> };
}

export interface EmmettProcessor {
  readonly processorId: string;
  readonly startFrom: 'BEGINNING' | 'END';
  readonly eachMessage: (message: EmmettMessage) => Promise<{ type: 'STOP' } | undefined>;
}

export interface EmmettConsumer {
  /** The name of the field in PostgreSQL. */
  reactor?(options: EmmettProcessor): void;
  /** The name of the field in SQLite. */
  processor?(options: EmmettProcessor): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface EmmettPostgres {
  getPostgreSQLEventStore(
    url: string,
    options: {
      readonly connectionOptions: { readonly dumbo: Dumbo };
      readonly schema: { readonly autoMigration: 'None' };
    },
  ): EmmettStore;
}

export interface Dumbo {
  close(): Promise<void>;
}

interface SqliteConnection {
  command(sql: string): Promise<unknown>;
  close(): void;
}

export interface EmmettSqlite {
  getSQLiteEventStore(options: {
    readonly fileName: string;
    readonly connectionOptions: { readonly singleton: true; readonly connection: SqliteConnection };
    readonly schema: { readonly autoMigration: 'None' };
  }): EmmettStore;
  sqliteConnection(options: { readonly fileName: string }): SqliteConnection;
}
