// The pool of a DataSource, so that nobody opens a second one beside it.

import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { MillraceError } from '../../foundation/error.ts';

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
  throw new MillraceError('NOT_SUPPORTED', 'this needs a DataSource of PostgreSQL', {
    details: { field: 'dataSource', engine: type },
  });
}
