// The tenant and aggregate of an event, from the name of its stream.

import { categoryOf } from '../../../store/recorded-event.ts';
import { parseStreamName } from '../../../contracts/stream-name.ts';
import { splitTenant, type TenantLookup } from '../../../contracts/tenant.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';

export interface EventPlace {
  /** Empty: the stream belongs to no tenant. */
  readonly tenant: string;
  readonly aggregate: DomainEventEnvelope['aggregate'];
}

/** Like `parseStreamName`, but accepts names with other rules. */
export function placeOf(stream: string, tenants: TenantLookup | undefined): EventPlace {
  const tenant = tenantOfStream(stream, tenants);
  if (tenant !== '' && grammar.test(stream)) {
    const { bc, agg, id } = parseStreamName(stream, tenants);
    return { tenant, aggregate: { bc, type: agg, id } };
  }
  return { tenant, aggregate: { bc: '', type: '', id: stream } };
}

const grammar = /^[a-z][a-zA-Z0-9]*\.[a-z][a-zA-Z0-9]*\.v[1-9][0-9]{0,8}-/;

export function tenantOfStream(stream: string, tenants: TenantLookup | undefined): string {
  if (!grammar.test(stream)) return '';
  const category = categoryOf(stream);
  if (category === undefined) return '';
  return splitTenant(stream.slice(category.length + 1), tenants)?.tenant ?? '';
}
