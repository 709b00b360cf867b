// The schema behind an outbox's URL. A file has one schema for everything.

import type { DatabaseSchema } from './database-schema.ts';
import { eventStoreSchema } from './event-store-schema.ts';
import { postgresSchema } from './postgres-schema.ts';
import { parseStoreUrl } from './store-url.ts';

/**
 * The schema of the outbox that a URL names: `core_outbox` in PostgreSQL, the file's own in SQLite.
 *
 * @example
 * import { outboxSchema } from 'millrace/platform';
 *
 * const schema = await outboxSchema('postgres://localhost/shop');
 * console.log(schema.script(schema.steps)); // for the tool that runs your migrations
 */
export async function outboxSchema(url: string, schema = 'core_outbox'): Promise<DatabaseSchema> {
  const target = parseStoreUrl(url);
  if (target.engine !== 'postgres') return eventStoreSchema(url);
  const { migratePostgresOutbox, postgresOutboxMigrations } =
    await import('../adapters/postgres/index.ts');
  return postgresSchema(target.connection, schema, {
    steps: postgresOutboxMigrations(schema),
    take: migratePostgresOutbox,
  });
}
