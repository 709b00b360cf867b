// The role of the sagas' index: its URL chooses where sagas and their timers are found.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { SagaHost, SagaIndex } from '../../reactors/saga-index.ts';
import type { EventStore } from '../../store/event-store.ts';
import { openEventStore } from './open-event-store.ts';

export interface OpenSagaIndexOptions {
  readonly observer?: Observer;
  /** Redis: how long an answer may take. Default: 5 s. */
  readonly timeoutMs?: number;
}

/**
 * Opens the index of sagas that a URL names: `redis://…`, `rediss:`, `redis+cluster://a:6379,b:6379`
 * (or `?cluster`), or the one beside the events: `sqlite:<file>`, `postgres://…`, `memory:`.
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
    const { redisSagaIndex } = await import('../../adapters/redis/index.ts');
    return redisSagaIndex(url, options);
  }
  const store: EventStore & Partial<SagaHost> = await openEventStore(url);
  const { sagas } = store;
  if (sagas === undefined) {
    await store[Symbol.asyncDispose]();
    throw new MillraceError('NOT_SUPPORTED', 'this engine has no room for an index of sagas', {
      details: { field: 'sagaIndex' },
    });
  }
  return { ...sagas, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
}
