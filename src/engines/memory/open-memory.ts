// All roles in the memory of one process, for unit tests: a SQLite database without a file and without a writer thread.

import type { EventStoreOptions } from '../../store/event-store.ts';
import type { BusOptions } from '../../bus/create-bus.ts';
import { lazyRoles } from '../../foundation/lazy-roles.ts';
import type { OutboxLedgerOptions } from '../../outbox/create-outbox-ledger.ts';
import { sqliteMemoryFile } from '../sqlite/connection/memory-file.ts';
import { sqliteRoles, type SqliteRoles } from '../sqlite/open-sqlite.ts';

export interface MemoryEngine extends SqliteRoles, AsyncDisposable {}

/**
 * Opens all roles in memory. They are lost with the process.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 *
 * await using db = openMemory();
 * console.log(await db.store.streamInfo('banking.currency.v1-core-USD')); // undefined
 */
export function openMemory(
  options: EventStoreOptions & OutboxLedgerOptions & BusOptions = {},
): MemoryEngine {
  const { factories, lifetime } = sqliteRoles(sqliteMemoryFile(options), 'memory:', options);
  return lazyRoles<SqliteRoles>(factories, lifetime);
}
