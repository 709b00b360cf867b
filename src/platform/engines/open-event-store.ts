// The event store by URL: only the adapter of the chosen engine is loaded.

import type { EventStoreOptions } from '../../store/create-event-store.ts';
import type { EventStore } from '../../store/event-store.ts';
import { checkSchema, parseStoreUrl } from './store-url.ts';

export interface OpenEventStoreOptions extends EventStoreOptions {
  /** PostgreSQL: the schema of the tables. Default: the URL's `schema` parameter, or `millrace`. */
  readonly schema?: string;
  /** PostgreSQL: `off` leaves the schema to `millrace migrate`; a file is always migrated. */
  readonly migrate?: 'auto' | 'off';
}

/**
 * Opens the event store at a URL: `sqlite:<file>`, `postgres://…` (with `?schema=…`), `mongodb://…`, `kurrentdb://…`
 * or `memory:`. Rejects with `DRIVER_MISSING` if the driver is not installed.
 *
 * @example
 * import { openEventStore } from 'millrace/platform';
 *
 * await using store = await openEventStore('sqlite:.millrace/events.db');
 * for await (const event of store.readStream('banking.currency.v1-core-USD')) {
 *   console.log(event.revision, event.type);
 * }
 */
export async function openEventStore(
  url: string,
  options: OpenEventStoreOptions = {},
): Promise<EventStore> {
  const { schema, migrate = 'auto', ...storeOptions } = options;
  const target = parseStoreUrl(url);
  if (target.engine === 'sqlite') {
    const { sqliteEventStore } = await import('../../engines/sqlite/index.ts');
    return sqliteEventStore(`sqlite:${target.path}`, storeOptions);
  }
  if (target.engine === 'postgres') {
    if (schema !== undefined) checkSchema(schema);
    const { postgresEventStore } = await import('../../engines/postgres/index.ts');
    const postgres = { schema: schema ?? target.schema, migrate };
    return postgresEventStore(target.connection, { ...storeOptions, ...postgres });
  }
  if (target.engine === 'mongodb') {
    const { mongodbEventStore } = await import('../../engines/mongodb/index.ts');
    return mongodbEventStore(target.connection, storeOptions);
  }
  if (target.engine === 'kurrentdb') {
    const { kurrentdbEventStore } = await import('../../engines/kurrentdb/index.ts');
    return kurrentdbEventStore(target.connection, storeOptions);
  }
  const { memoryEventStore } = await import('../../engines/memory/index.ts');
  return memoryEventStore(storeOptions);
}
