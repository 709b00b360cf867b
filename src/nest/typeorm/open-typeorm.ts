// PostgreSQL as all roles, on the connection pool of a TypeORM DataSource, and access to that pool.

import type { Client, Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { databaseOf } from '../../engines/postgres/connection/database-of.ts';
import {
  openPostgres,
  type PostgresEngine,
  type PostgresOptions,
} from '../../engines/postgres/index.ts';
import { MillraceError } from '../../foundation/error.ts';
import { readOutboxEnvironment } from '../../platform/config/outbox-environment.ts';

export interface TypeormOptions extends Omit<PostgresOptions, 'connectionsMax'> {
  /** The attempts of a message that is enqueued without `maxAttempts`. Default: `OUTBOX_MAX_ATTEMPTS`, else 10. */
  readonly outboxMaxAttempts?: number | undefined;
}

/**
 * Opens the database of an initialised PostgreSQL DataSource on its pool. Live reading of the store keeps one
 * connection of the pool, and a dispatcher of the outbox another. Close the handle before the DataSource, as the
 * module does.
 *
 * @example
 * import { openTypeorm } from 'millrace/nest/typeorm';
 * import type { DataSource } from 'typeorm';
 *
 * async function count(dataSource: DataSource): Promise<number> {
 *   await using db = await openTypeorm(dataSource);
 *   return (await db.store.readAll({ limit: 100 }).toArray()).length;
 * }
 */
export async function openTypeorm(
  dataSource: DataSource,
  options: TypeormOptions = {},
): Promise<PostgresEngine> {
  const { outboxMaxAttempts = readOutboxEnvironment(process.env).maxAttempts } = options;
  return openPostgres(poolOf(dataSource), { ...options, outboxMaxAttempts });
}

export function poolOf(dataSource: DataSource): Pool {
  checkIsPostgres(dataSource);
  if (!dataSource.isInitialized) {
    throw new MillraceError('STORE_CLOSED', 'the DataSource is not initialised');
  }
  return driverOf(dataSource).master;
}

/** The database of the pool, as the engine identifies it. */
export function databaseOfPool(dataSource: DataSource): string {
  const { master, postgres } = driverOf(dataSource);
  // A client without a connection: the driver resolves URLs, options and environment variables.
  return databaseOf(new postgres.Client(master.options));
}

export function checkIsPostgres({ options: { type } }: DataSource): void {
  if (type === 'postgres') return;
  throw new MillraceError('NOT_SUPPORTED', `a PostgreSQL DataSource is required, not '${type}'`, {
    details: { field: 'dataSource', engine: type },
  });
}

interface PostgresDriver {
  /** The pool for writing. */
  readonly master: Pool;
  /** The module `pg`. */
  readonly postgres: { readonly Client: typeof Client };
}

/** TypeORM has no public access to its pool. */
function driverOf({ driver }: DataSource): PostgresDriver {
  return driver as unknown as PostgresDriver;
}
