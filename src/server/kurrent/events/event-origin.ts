// The tenant and aggregate of an event, from the owner and the name of its stream.

import { parseStreamName, tenantOfStream } from '../../../contracts/stream-name.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';

export interface EventOrigin {
  /** Empty: the stream belongs to no tenant. */
  readonly tenant: string;
  readonly aggregate: DomainEventEnvelope['aggregate'];
}

/** Like `parseStreamName`, but accepts names with other rules. */
export function originOf(stream: string, owner: string): EventOrigin {
  const tenants = { has: (name: string) => name === owner };
  if (tenantOfStream(stream, tenants) === '') {
    return { tenant: owner, aggregate: { bc: '', type: '', id: stream } };
  }
  const { bc, agg, id } = parseStreamName(stream, tenants);
  return { tenant: owner, aggregate: { bc, type: agg, id } };
}
