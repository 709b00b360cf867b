// How the adapter talks to the database: the user's pool or one of our own, rows as arrays, numbers
// as numbers, and the driver's errors told apart.

import { createHash } from 'node:crypto';
import type { ClientBase, Pool, PoolClient, QueryArrayConfig, QueryArrayResult } from 'pg';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { askText } from './ask-text.ts';

type Cell = string | number | boolean | null | Buffer;
export type Row = readonly Cell[];

/** Anything that runs a query: a pool, a client, or a transaction of the user's. */
export type Queryable = Pick<ClientBase, 'query'> | Pick<Pool, 'query'>;

export interface PostgresConnection extends AsyncDisposable {
  readonly pool: Pool;
  query(sql: PreparedSql, values: readonly unknown[], on?: Queryable): Promise<readonly Row[]>;
  /**
   * In a commit of its own, beside a transaction of the caller's if there is one. It must not be done
   * inside: others would wait for what the transaction has not committed, and among them we
   * ourselves, in a circle that the database cannot see.
   */
  queryBeside(
    sql: PreparedSql,
    values: readonly unknown[],
    transaction?: Queryable,
  ): Promise<readonly Row[]>;
}

export interface PreparedSql {
  /** Under this name the server keeps the plan; one per statement and schema. */
  readonly name: string;
  readonly text: string;
  /** One row with one text, of values that are texts, numbers, booleans or null. */
  readonly isText?: true;
}

/** The appender's memory of what is there does not hold any more, and was cleared. */
const streamsMissing = 'MR001';

/** What the driver's pool says once it was ended. */
const poolEnded = 'Cannot use a pool after calling end on the pool';

/** PostgreSQL cuts longer names of statements off, and then takes one for another. */
const statementNameBytesMax = 63;

const int8 = 20;
const int4 = 23;
const bool = 16;
const bytea = 17;

/** JSON stays text: the store parses it once, and only what is asked for. */
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
  options: { readonly prepare: boolean; readonly connectionsMax: number },
): Promise<PostgresConnection> {
  const own = typeof target === 'string';
  const pool = own ? await ownPool(target, options.connectionsMax) : target;
  // Without a listener, a connection that breaks while idle would end the process.
  const ignore = (): void => undefined;
  pool.on('error', ignore);

  async function query(
    sql: PreparedSql,
    values: readonly unknown[],
    on: Queryable = pool,
  ): Promise<readonly Row[]> {
    const { text } = sql;
    const name = statementName(sql.name);
    const answer = sql.isText === true ? askText(on, { name, text }, values) : undefined;
    if (answer !== undefined) return [[await answer]];
    const config: QueryArrayConfig = { text, values: values as unknown[], rowMode: 'array', types };
    if (options.prepare) config.name = name;
    const result: QueryArrayResult = await on.query(config);
    return result.rows as Row[];
  }

  return {
    pool,
    query,
    async queryBeside(sql, values, transaction) {
      const isExhausted =
        pool.idleCount <= pool.waitingCount && pool.totalCount >= (pool.options.max ?? 10);
      if (transaction === undefined || !isExhausted) return query(sql, values);
      // Everybody who has a connection of the pool might be waiting for one more, for ever.
      const { default: pg } = await loadDriver('pg', () => import('pg'));
      const spare = new pg.Client(pool.options);
      spare.on('error', ignore);
      try {
        await spare.connect();
        return await query(sql, values, spare);
      } finally {
        await spare.end();
      }
    },
    async [Symbol.asyncDispose]() {
      // Our own keeps the listener: its connections may break while they are being ended.
      if (own) await pool.end();
      else pool.off('error', ignore);
    },
  };
}

/**
 * A connection of the pool that may break at any time: an error that arrives in the same packet as
 * the connection would find nobody who listens, were it waited for by a promise, and end the process.
 */
export function checkOut(pool: Pool): Promise<PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) return reject(error ?? new Error('the pool gave no connection'));
      if (!client.listeners('error').includes(ignoreError)) client.on('error', ignoreError);
      resolve(client);
    });
  });
}

/** The query under way tells of a broken connection, and so does the next one. */
const ignoreError = (): void => undefined;

async function ownPool(connectionString: string, max: number): Promise<Pool> {
  const { default: pg } = await loadDriver('pg', () => import('pg'));
  return new pg.Pool({
    connectionString,
    max,
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
    application_name: 'millrace',
  });
}

function statementName(name: string): string {
  // Three bytes are the most that a character can take.
  if (
    name.length * 3 <= statementNameBytesMax ||
    Buffer.byteLength(name) <= statementNameBytesMax
  ) {
    return name;
  }
  return createHash('sha256').update(name).digest('hex').slice(0, statementNameBytesMax);
}

/** Whether trying again can help: the connection broke, the server restarts, or two met in a circle. */
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

/** Runs work against the database; its failures become ours. */
export async function askPostgres<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(error);
  }
}

export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = codeOf(error);
  const reason = error instanceof Error ? error.message : String(error);
  // What was asked for before the store was closed, and only now gets to the database.
  if (reason === poolEnded) return new MillraceError('STORE_CLOSED', 'the event store was closed');
  const full = code === '53100' ? 'the disk is full' : reason;
  return new MillraceError('STORE_UNAVAILABLE', `the database did not do it: ${full}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason: full, ...(code === undefined ? {} : { code }) },
  });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
