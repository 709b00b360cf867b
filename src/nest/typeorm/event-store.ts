// The event store on the connection pool of a TypeORM DataSource, and access to that pool.

import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { postgresEventStore, type PostgresOptions } from '../../engines/postgres/index.ts';
import { MillraceError } from '../../foundation/error.ts';

/**
 * Opens the event store on an initialised PostgreSQL DataSource. Live reading keeps one connection of its pool.
 * Close the store before the DataSource, as the module does.
 *
 * @example
 * import { typeormEventStore } from 'millrace/nest/typeorm';
 * import type { DataSource } from 'typeorm';
 *
 * async function count(dataSource: DataSource): Promise<number> {
 *   await using store = await typeormEventStore(dataSource);
 *   return (await store.readAll({ limit: 100 }).toArray()).length;
 * }
 */
export async function typeormEventStore(
  dataSource: DataSource,
  options: Omit<PostgresOptions, 'connectionsMax'> = {},
): ReturnType<typeof postgresEventStore> {
  return postgresEventStore(poolOf(dataSource), options);
}

/** TypeORM keeps its pool for writing at `driver.master`. */
export function poolOf(dataSource: DataSource): Pool {
  checkIsPostgres(dataSource);
  if (!dataSource.isInitialized) {
    throw new MillraceError('STORE_CLOSED', 'the DataSource is not initialised');
  }
  return (dataSource.driver as unknown as { readonly master: Pool }).master;
}

export function checkIsPostgres({ options: { type } }: DataSource): void {
  if (type === 'postgres') return;
  throw new MillraceError('NOT_SUPPORTED', `a PostgreSQL DataSource is required, not '${type}'`, {
    details: { field: 'dataSource', engine: type },
  });
}
