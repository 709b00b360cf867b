// The ledger of the outbox by URL: only the adapter of the chosen engine is loaded.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { parseStoreUrl } from './store-url.ts';

export interface OpenOutboxLedgerOptions {
  /** PostgreSQL: `off` expects an up-to-date schema; a file is always migrated. */
  readonly migrate?: 'auto' | 'off' | undefined;
  /** PostgreSQL: default `core_outbox`, independent of the store's schema. */
  readonly schema?: string | undefined;
  readonly observer?: Observer | undefined;
}

/**
 * Opens the ledger at a URL: `sqlite:<file>` (may be the event store's), `postgres://…` or `memory:`.
 *
 * @example
 * import { openOutboxLedger } from 'millrace/platform';
 *
 * await using ledger = await openOutboxLedger('sqlite:.millrace/events.db');
 * console.log(await ledger.counts());
 */
export async function openOutboxLedger(
  url: string,
  options: OpenOutboxLedgerOptions = {},
): Promise<OutboxLedger> {
  const target = parseStoreUrl(url);
  if (target.engine === 'sqlite') {
    const { sqliteOutboxLedger } = await import('../../engines/sqlite/index.ts');
    return sqliteOutboxLedger(`sqlite:${target.path}`);
  }
  if (target.engine === 'postgres') {
    const { postgresOutboxLedger } = await import('../../engines/postgres/index.ts');
    return postgresOutboxLedger(target.connection, options);
  }
  if (target.engine === 'memory') {
    const { memoryOutboxLedger } = await import('../../outbox/memory-outbox-ledger.ts');
    return memoryOutboxLedger();
  }
  throw new MillraceError(
    'NOT_SUPPORTED',
    `${target.engine} does not support an outbox: configure a database for it, such as MILLRACE_OUTBOX=postgres://…`,
    {
      details: { field: 'outbox', engine: target.engine },
    },
  );
}
