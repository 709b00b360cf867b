// What a store behind the facade must allow.

import type { EventStoreOptions } from '../../store/create-event-store.ts';

/**
 * Options for the store that a KurrentDB client is to see: any names, and room for binary data,
 * which grows by a third where the store keeps it as text.
 *
 * @example
 * import { sqliteEventStore } from 'millrace/adapters/sqlite';
 * import { kurrentStoreOptions } from 'millrace/server/kurrent';
 *
 * await using store = await sqliteEventStore('sqlite:.millrace/events.db', kurrentStoreOptions);
 */
export const kurrentStoreOptions = {
  names: 'open',
  payloadBytesMax: 24 * 1_048_576,
} as const satisfies EventStoreOptions;
