// Read models by URL.

import type { Observer } from '../../foundation/observer.ts';
import type { ReadModelStore } from '../../projections/read-model-store.ts';
import { openStorePart } from './open-event-store.ts';
import { isEngine } from './store-url.ts';

export interface OpenReadModelsOptions {
  readonly observer?: Observer | undefined;
  /** Redis: time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** Redis: as JSON (default), or as hashes with a field for each member. */
  readonly documents?: 'json' | 'hash' | undefined;
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
  return isEngine('redis', url)
    ? (await import('../../engines/redis/index.ts')).redisReadModels(url, options)
    : openStorePart(url, 'readModels', ({ readModels }) => readModels);
}
