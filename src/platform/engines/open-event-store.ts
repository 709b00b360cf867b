// The event store by URL: only the adapter of the chosen engine is loaded.

import { MillraceError } from '../../foundation/error.ts';
import type { ReadModelHost } from '../../projections/read-model-store.ts';
import type { SagaHost } from '../../reactors/saga-index.ts';
import type { EventStoreOptions } from '../../store/create-event-store.ts';
import type { EventStore } from '../../store/event-store.ts';
import { checkSchema, parseStoreUrl } from './store-url.ts';

export interface OpenEventStoreOptions extends EventStoreOptions {
  /** PostgreSQL: the schema of the tables. Default: the URL's `schema` parameter, or `millrace`. */
  readonly schema?: string | undefined;
  /** PostgreSQL: `off` leaves the schema to `millrace migrate`; a file is always migrated. */
  readonly migrate?: 'auto' | 'off' | undefined;
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
  switch (target.engine) {
    case 'sqlite': {
      const { sqliteEventStore } = await import('../../engines/sqlite/index.ts');
      return sqliteEventStore(`sqlite:${target.path}`, storeOptions);
    }
    case 'postgres': {
      if (schema !== undefined) checkSchema(schema);
      const { postgresEventStore } = await import('../../engines/postgres/index.ts');
      const postgres = { schema: schema ?? target.schema, migrate };
      return postgresEventStore(target.connection, { ...storeOptions, ...postgres });
    }
    case 'mongodb': {
      const { mongodbEventStore } = await import('../../engines/mongodb/index.ts');
      return mongodbEventStore(target.connection, storeOptions);
    }
    case 'kurrentdb': {
      const { kurrentdbEventStore } = await import('../../engines/kurrentdb/index.ts');
      return kurrentdbEventStore(target.connection, storeOptions);
    }
    default:
      return (await import('../../engines/memory/index.ts')).memoryEventStore(storeOptions);
  }
}

type Host = EventStore & Partial<ReadModelHost & SagaHost>;

/** A part of the store at a URL; disposing it closes the store. */
export async function openStorePart<Part extends object>(
  url: string,
  field: string,
  pick: (store: Host) => Part | undefined,
): Promise<Part & AsyncDisposable> {
  const store: Host = await openEventStore(url);
  const part = pick(store);
  if (part !== undefined)
    return { ...part, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
  await store[Symbol.asyncDispose]();
  throw new MillraceError('NOT_SUPPORTED', `this engine does not support ${field}`, {
    details: { field },
  });
}
