// The saga that a stream is the record of: its name says which, and its first event says whose it is.

import { parseStreamName } from '../contracts/stream-name.ts';
import type { Clock } from '../foundation/clock.ts';
import type { EventStore } from '../store/event-store.ts';
import { sagaAdmin, type SagaAddress, type SagaAdmin } from './saga-admin.ts';
import type { SagaHost, SagaIndex } from './saga-index.ts';

export async function sagaAt(
  store: EventStore & Partial<SagaHost>,
  stream: string,
  options: { readonly index?: SagaIndex; readonly clock?: Clock } = {},
): Promise<{ readonly sagas: SagaAdmin; readonly address: SagaAddress }> {
  const [first] = await store.readStream(stream, { limit: 1 }).toArray();
  // Only the event knows where a tenant with a hyphen ends.
  const tenants = new Set(first === undefined ? [] : [first.tenant]);
  const { bc, agg, version, tenant, id } = parseStreamName(stream, tenants);
  const sagas = sagaAdmin(store, { bc, name: agg, version }, { ...options, tenants });
  return { sagas, address: { tenant, key: id } };
}
