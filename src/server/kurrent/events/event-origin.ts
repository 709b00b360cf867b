// The tenant and aggregate of an event, from the name of its stream.

import { parseStreamName, tenantOfStream } from '../../../contracts/stream-name.ts';
import type { TenantLookup } from '../../../contracts/tenant.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';

export interface EventOrigin {
  /** Empty: the stream belongs to no tenant. */
  readonly tenant: string;
  readonly aggregate: DomainEventEnvelope['aggregate'];
}

/** Like `parseStreamName`, but accepts names with other rules. */
export function originOf(stream: string, tenants: TenantLookup | undefined): EventOrigin {
  const tenant = tenantOfStream(stream, tenants);
  if (tenant !== '') {
    const { bc, agg, id } = parseStreamName(stream, tenants);
    return { tenant, aggregate: { bc, type: agg, id } };
  }
  return { tenant, aggregate: { bc: '', type: '', id: stream } };
}
