// The index of sagas and their timers, by URL.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { SagaHost, SagaIndex } from '../../reactors/saga-index.ts';
import type { EventStore } from '../../store/event-store.ts';
import { openEventStore } from './open-event-store.ts';

export interface OpenSagaIndexOptions {
  readonly observer?: Observer;
  /** Redis: time limit of a call. Default: 5 s. */
  readonly timeoutMs?: number;
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
  if (/^rediss?(\+cluster)?:/i.test(url)) {
    const { redisSagaIndex } = await import('../../engines/redis/index.ts');
    return redisSagaIndex(url, options);
  }
  const store: EventStore & Partial<SagaHost> = await openEventStore(url);
  const { sagas } = store;
  if (sagas === undefined) {
    await store[Symbol.asyncDispose]();
    throw new MillraceError('NOT_SUPPORTED', 'this engine does not support an index of sagas', {
      details: { field: 'sagaIndex' },
    });
  }
  return { ...sagas, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
