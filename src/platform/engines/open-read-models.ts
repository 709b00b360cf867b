// Read models by URL.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { ReadModelHost, ReadModelStore } from '../../projections/read-model-store.ts';
import { openEventStore } from './open-event-store.ts';

export interface OpenReadModelsOptions {
  readonly observer?: Observer;
  /** Redis: time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number;
  /** Redis: as JSON (default), or as hashes with a field for each member. */
  readonly documents?: 'json' | 'hash';
}

/**
 * Opens the read models at a URL: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379` (or `?cluster`), or those of
 * an event store: `sqlite:<file>`, `postgres://…`, `memory:`.
 *
 * @example
 * import { openReadModels } from 'millrace/platform';
 * import { documentsOf, readModel } from 'millrace/projections';
 *
 * await using readModels = await openReadModels('redis://localhost:6379');
 * const currencies = readModel<{ readonly code: string }>({
 *   bc: 'banking', aggregate: 'currency', version: 1, indexes: { code: ({ code }) => code },
 * });
 * const found = await documentsOf(readModels, currencies).byIndex('core', 'code', 'usd');
 */
export async function openReadModels(
  url: string,
  options: OpenReadModelsOptions = {},
): Promise<ReadModelStore & AsyncDisposable> {
  if (/^rediss?(\+cluster)?:/i.test(url)) {
    const { redisReadModels } = await import('../../engines/redis/index.ts');
    return redisReadModels(url, options);
  }
  const store: EventStore & Partial<ReadModelHost> = await openEventStore(url);
  const { readModels } = store;
  if (readModels === undefined) {
    await store[Symbol.asyncDispose]();
    throw new MillraceError('NOT_SUPPORTED', 'this engine does not support read models', {
      details: { field: 'readModels' },
    });
  }
  return { ...readModels, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
