// Access to the database: the client of the user or of the store, and the translation of driver errors.

import type { Db, MongoClient } from 'mongodb';
import { urlParts } from '../../contracts/engine-url.ts';
import { systemClock } from '../../foundation/clock.ts';
import { aroundCalls } from '../../foundation/async/around-calls.ts';
import { convertErrors, MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';

export interface MongodbConnection extends AsyncDisposable {
  readonly db: Db;
}

export interface ConnectOptions {
  readonly database: string | undefined;
  readonly connectionsMax: number;
}

const databaseDefault = 'millrace';

export async function connectMongodb(
  target: string | MongoClient | Db,
  { database, connectionsMax }: ConnectOptions,
): Promise<MongodbConnection> {
  if (typeof target !== 'string') {
    const db = 'databaseName' in target ? target : target.db(database);
    // The user closes the client.
    return { db, async [Symbol.asyncDispose]() {} };
  }
  const { path } = urlParts(target, 'url', 'mongodb');
  const { MongoClient: Client } = await loadDriver('mongodb', () => import('mongodb'));
  const client = clientOf(Client, target, connectionsMax);
  try {
    await client.connect();
  } catch (error) {
    await client.close();
    throw unavailable(error);
  }
  return {
    db: client.db(database ?? (path === '' ? databaseDefault : undefined)),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

function clientOf(Client: typeof MongoClient, url: string, connectionsMax: number): MongoClient {
  try {
    return new Client(
      clientUrl(url, {
        appName: 'millrace',
        maxPoolSize: String(connectionsMax),
        serverSelectionTimeoutMS: '5000',
      }),
    );
  } catch (error) {
    // The driver's message names the invalid option. The URL may contain a password, so it is not quoted.
    const reason = error instanceof Error ? error.message : String(error);
    throw new MillraceError('CONFIG_INVALID', `invalid MongoDB URL: ${reason}`, {
      details: { reason },
    });
  }
}

/** Adds defaults to the URL: as driver options, they would override the options of the URL. */
export function clientUrl(url: string, defaults: Readonly<Record<string, string>>): string {
  const [, address = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(url) ?? [];
  const given = new Set([...new URLSearchParams(query).keys()].map((name) => name.toLowerCase()));
  const added = Object.entries(defaults)
    .filter(([name]) => !given.has(name.toLowerCase()))
    .map(([name, value]) => `${name}=${value}`);
  const all = [query, ...added].filter((part) => part !== '').join('&');
  // A query requires a path before it, even an empty one.
  return `${/:\/\/[^/]+\//.test(address) ? address : `${address}/`}?${all}`;
}

const duplicateKey = 11_000;

/** Server codes of a primary that steps down, shuts down, is unreachable or was just elected. */
const transientCodes: ReadonlySet<unknown> = new Set([
  6, 7, 43, 64, 89, 91, 134, 189, 237, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436,
]);
const transientNames =
  /^Mongo(Network|ServerSelection|PoolCleared|PoolClosed|WaitQueue|NotConnected|TopologyClosed)/;
const socketCodes = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET)/;

/** Whether duplicate keys are the only error. */
export function isDuplicate(error: unknown): boolean {
  if (codeOf(error) !== duplicateKey) return false;
  const { writeErrors } = error as { readonly writeErrors?: unknown };
  return (
    !Array.isArray(writeErrors) ||
    writeErrors.every((writeError) => codeOf(writeError) === duplicateKey)
  );
}

/** Whether a retry can help. The operation may have succeeded nevertheless. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errorResponse } = error as {
    readonly code?: unknown;
    readonly errorResponse?: unknown;
  };
  if (transientNames.test(error.name) || transientCodes.has(code)) return true;
  // Socket errors, and errors of bulk writes, which the driver wraps.
  return (typeof code === 'string' && socketCodes.test(code)) || isTransient(errorResponse);
}

/** Waiting until a write of another process reaches a majority: all attempts together take about ten seconds. */
export const majorityWait = {
  attemptsMax: 12,
  sleep: (attempt: number): Promise<void> => systemClock.sleep(5 * 2 ** attempt),
} as const;

export function unavailable(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const code = codeOf(error);
  const reason = error instanceof Error ? error.message : String(error);
  return new MillraceError('STORE_UNAVAILABLE', `MongoDB operation failed: ${reason}`, {
    cause: error,
    retryable: isTransient(error),
    details: { reason, ...(code === undefined ? {} : { code }) },
  });
}

/** The same methods, whose errors of the driver become `STORE_UNAVAILABLE`. */
export function translated<T extends object>(methods: T): T {
  return aroundCalls(methods, (work) => convertErrors(work, unavailable));
}

export function codeOf(error: unknown): number | undefined {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}
