// Access to the database: the one pool of all roles, prepared statements, transactions, and the translation of driver
// errors.

import { createHash } from 'node:crypto';
import type { ClientBase, Pool, PoolClient, QueryArrayConfig, QueryArrayResult } from 'pg';
import { convertErrors, MillraceError } from '../../../foundation/error.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import { databaseOf } from './database-of.ts';
import { freeConnections } from './free-connections.ts';

type Cell = string | number | boolean | null | Buffer;
export type Row = readonly Cell[];

/** A pool, a client, or a client inside the caller's transaction. */
export type Queryable = Pick<ClientBase, 'query'> | Pick<Pool, 'query'>;

export interface PostgresConnection extends AsyncDisposable {
  readonly pool: Pool;
  /** Identifies the database: `postgres://host:port/database`. */
  readonly database: string;
  query(sql: PreparedSql, values: readonly unknown[], on?: Queryable): Promise<readonly Row[]>;
  /**
   * Runs and commits a query on another connection than the transaction of the caller. Inside that transaction, the
   * query would lock rows that other work waits for: a deadlock that PostgreSQL cannot detect.
   */
  queryOutside(
    transaction: Queryable | undefined,
    sql: PreparedSql,
    values: readonly unknown[],
  ): Promise<readonly Row[]>;
}

export interface PreparedSql {
  /** The server keeps the plan under this name; one name per statement and schema. */
  readonly name: string;
  readonly text: string;
}

export interface ConnectOptions {
  /** `auto` (default) migrates the schema when it is opened; `off` leaves that to `millrace migrate`. */
  readonly migrate?: 'auto' | 'off' | undefined;
  /** Named prepared statements. Set it to false with a pooler in transaction mode. Default: true. */
  readonly prepare?: boolean | undefined;
  /** Size of the pool that is created for a URL. Default: 10. */
  readonly connectionsMax?: number | undefined;
}

/** Raised by `append_events`: a stream that the appender remembered has no row. The appender forgets all streams. */
const streamsMissing = 'MR001';

/** The message of an error of `pg-pool` after `end()`. */
const poolEnded = 'Cannot use a pool after calling end on the pool';

/** PostgreSQL truncates longer statement names, so two long names could collide. */
const statementNameBytesMax = 63;

const int8 = 20;
const int4 = 23;
const bool = 16;
const bytea = 17;

/** JSON stays a string: the store parses it once, and only if a caller needs it. */
const types = {
  getTypeParser(oid: number) {
    if (oid === int8 || oid === int4) return Number;
    if (oid === bool) return (text: string): boolean => text === 't';
    if (oid === bytea) return (text: string): Buffer => Buffer.from(text.slice(2), 'hex');
    return (text: string): string => text;
  },
};

export async function connectPostgres(
  target: string | Pool,
  { migrate = 'auto', prepare = true, connectionsMax = 10 }: ConnectOptions,
  migrateSchema?: (client: PoolClient) => Promise<unknown>,
): Promise<PostgresConnection> {
  const { default: pg } = await loadDriver('pg', () => import('pg'));
  const isOwn = typeof target === 'string';
  const pool = isOwn
    ? new pg.Pool({
        connectionString: target,
        max: connectionsMax,
        keepAlive: true,
        connectionTimeoutMillis: 5_000,
        application_name: 'millrace',
      })
    : target;
  // Without a listener, an idle connection that breaks would end the process.
  pool.on('error', ignoreError);

  async function query(
    { name, text }: PreparedSql,
    values: readonly unknown[],
    on: Queryable = pool,
  ): Promise<readonly Row[]> {
    const config: QueryArrayConfig = { text, values: values as unknown[], rowMode: 'array', types };
    if (prepare) config.name = statementName(name);
    const result: QueryArrayResult = await on.query(config);
    return result.rows as Row[];
  }

  async function dispose(): Promise<void> {
    // A pool that was created here keeps the listener: its connections may break while the pool closes them.
    if (isOwn) await pool.end();
    else pool.off('error', ignoreError);
  }

  let database: string;
  try {
    // The driver resolves URLs and environment variables.
    database = databaseOf(new pg.Client(pool.options));
    if (migrate === 'auto' && migrateSchema !== undefined) await withClient(pool, migrateSchema);
  } catch (error) {
    await dispose();
    throw unavailable(error);
  }
  return {
    pool,
    database,
    query,
    async queryOutside(transaction, sql, values) {
      if (transaction === undefined || freeConnections(pool) > 0) return query(sql, values);
      // Every checked-out connection may belong to a transaction that waits here for one more.
      const spare = new pg.Client(pool.options);
      spare.on('error', ignoreError);
      try {
        await spare.connect();
        return await query(sql, values, spare);
      } finally {
        await spare.end();
      }
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** Ignoring the error is safe: the running query and the next one report a broken connection. */
const ignoreError = (): void => undefined;

/**
 * Checks a client out of the pool through a callback. If the client came through a promise, an error in the same packet
 * as the connection would find no listener and end the process.
 */
export function checkOut(pool: Pool): Promise<PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) return reject(error ?? new Error('the pool returned no client'));
      if (!client.listeners('error').includes(ignoreError)) client.on('error', ignoreError);
      resolve(client);
    });
  });
}

async function withClient(
  pool: Pool,
  work: (client: PoolClient) => Promise<unknown>,
): Promise<void> {
  const client = await checkOut(pool);
  try {
    await work(client);
  } finally {
    client.release();
  }
}

/** Commits when the work resolves, and rolls back when it rejects. */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await checkOut(pool);
  let isBroken = false;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    // On a broken connection the rollback fails too, and the server rolls back by itself.
    await client.query('rollback').catch(() => {
      isBroken = true;
    });
    throw error;
  } finally {
    client.release(isBroken);
  }
}

/**
 * Runs `create … if not exists` statements under a lock. Without it, two processes that start at the same time would
 * both find the table missing, and one would fail. PostgreSQL runs all statements as one transaction.
 */
export async function createIfMissing(
  on: { query(sql: string): Promise<unknown> },
  name: string,
  sql: string,
): Promise<void> {
  await on.query(`select pg_advisory_xact_lock(hashtext('millrace ${name}')); ${sql}`);
}

/** Returns a function that resolves to the pool once the table exists; after a failure, the next call tries again. */
export function createdOnUse(pool: Pool, name: string, sql: string): () => Promise<Pool> {
  let creating: Promise<void> | undefined;
  return async () => {
    creating ??= createIfMissing(pool, name, sql);
    try {
      await creating;
    } catch (error) {
      creating = undefined;
      throw error;
    }
    return pool;
  };
}

function statementName(name: string): string {
  // A UTF-16 unit takes at most three bytes, so short names need no count of their bytes.
  if (
    name.length * 3 <= statementNameBytesMax ||
    Buffer.byteLength(name) <= statementNameBytesMax
  ) {
    return name;
  }
  return createHash('sha256').update(name).digest('hex').slice(0, statementNameBytesMax);
}

/** Whether a retry can help: a lost connection, a restarting server, a deadlock, a serialization failure. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined)
    return error instanceof Error && /terminated|timeout|closed|not queryable/i.test(error.message);
  return (
    /^(08|57P|53)/.test(code) ||
    code === '40P01' ||
    code === '40001' ||
    code === streamsMissing ||
    /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOENT)/.test(code)
  );
}

/** Runs the work and converts the driver's errors into a `MillraceError`. */
export function translateErrors<T>(work: () => Promise<T>): Promise<T> {
  return convertErrors(work, unavailable);
}

export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  // A query that was queued before the store was closed and reaches the pool only now.
  if (message === poolEnded) return new MillraceError('STORE_CLOSED', 'the event store was closed');
  const reason = code === '53100' ? 'the disk is full' : message;
  return new MillraceError('STORE_UNAVAILABLE', `PostgreSQL query failed: ${reason}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason, ...(code === undefined ? {} : { code }) },
  });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
