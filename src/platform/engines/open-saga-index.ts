// The index of sagas and their timers, by URL.

import type { Observer } from '../../foundation/observer.ts';
import type { SagaIndex } from '../../reactors/saga-index.ts';
import { openStorePart } from './open-event-store.ts';
import { isEngine } from './store-url.ts';

export interface OpenSagaIndexOptions {
  readonly observer?: Observer | undefined;
  /** Redis: time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Opens the index of sagas at a URL: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379` (or `?cluster`), or that
 * of an event store: `sqlite:<file>`, `postgres://…`, `memory:`.
 *
 * @example
 * import { openSagaIndex } from 'millrace/platform';
 *
 * await using index = await openSagaIndex('redis://localhost:6379');
 * console.log(await index.list({ saga: 'shop.fulfilment.v1', status: 'parked' }));
 */
export async function openSagaIndex(
  url: string,
  options: OpenSagaIndexOptions = {},
): Promise<SagaIndex & AsyncDisposable> {
  return isEngine('redis', url)
    ? (await import('../../engines/redis/index.ts')).redisSagaIndex(url, options)
    : openStorePart(url, 'sagaIndex', ({ sagas }) => sagas);
}
