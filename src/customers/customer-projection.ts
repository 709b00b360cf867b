// `app:{core}:notify:customer-inbox:v1:<customer>`: which customers there are, and how they want to be told.

import { projection, type ProjectedEvent } from '../projections/projection.ts';
import { readModel } from '../projections/read-model.ts';
import type { inboxConfigured, inboxOpened } from './customer-events.ts';
import type { Preferences } from './customer-schemas.ts';
import { initialInbox } from './customer-state.ts';

export interface CustomerDocument {
  readonly customerId: string;
  readonly since: string;
  readonly preferences: Preferences;
}

type Opened = ProjectedEvent<ReturnType<typeof inboxOpened.parse>>;
type Configured = ProjectedEvent<ReturnType<typeof inboxConfigured.parse>>;

/**
 * The customers of a tenant, as documents.
 *
 * @example
 * import { customerProjection } from 'millrace/customers';
 *
 * console.log(customerProjection.readModel.name); // notify.customer-inbox.v1
 */
export const customerProjection = projection({
  name: 'sub:notify:customer-projection:v1',
  readModel: readModel<CustomerDocument>({ bc: 'notify', aggregate: 'customer-inbox', version: 1 }),
  on: {
    'customer-inbox.opened.v1': (before, { payload: { at }, aggregate }: Opened) =>
      before ?? { customerId: aggregate.id, since: at, preferences: initialInbox.preferences },
    'customer-inbox.configured.v1': (before, { payload, aggregate }: Configured) => ({
      customerId: aggregate.id,
      since: before?.since ?? payload.at,
      preferences: payload.preferences,
    }),
  },
});
