// The tenant and aggregate of an event, from the owner and the name of its stream.

import { aggregateOf } from '../../../contracts/stream-name.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';

export interface EventOrigin {
  /** Empty: the stream belongs to no tenant. */
  readonly tenant: string;
  readonly aggregate: DomainEventEnvelope['aggregate'];
}

/** Like `parseStreamName`, but accepts names with other rules. */
export function originOf(stream: string, owner: string): EventOrigin {
  return { tenant: owner, aggregate: aggregateOf(stream, owner) };
}
