// The saga that a command is about: its stream names it.

import { MillraceError } from '../foundation/error.ts';
import type { SagaHost } from '../reactors/index.ts';
import type { EventStore } from '../store/event-store.ts';
import { usage } from './command.ts';

export function sagaArgument(command: string, positionals: readonly string[]): string {
  const [stream, ...rest] = positionals;
  if (stream === undefined || stream === '' || rest.length > 0) {
    throw usage(`${command} takes one saga's stream, such as shop.fulfilment.v1-core-o1`);
  }
  return stream;
}

/** Stores that have an index of sagas bring it as a part of themselves. */
export function sagaHost(store: EventStore & Partial<SagaHost>): EventStore & SagaHost {
  const { sagas } = store;
  if (sagas !== undefined) return Object.assign(store, { sagas });
  throw new MillraceError('NOT_SUPPORTED', 'this store has no index of sagas');
}
