// The event store on a DataSource's own pool.

import type { DataSource } from 'typeorm';
import { postgresEventStore, type PostgresOptions } from '../../adapters/postgres/index.ts';
import { poolOf } from './typeorm-pool.ts';

/**
 * Opens the event store on an initialised DataSource of PostgreSQL; live reading keeps one connection of its
 * pool. Close it before the DataSource, as the module does.
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
