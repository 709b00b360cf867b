// What every handler works with.

import type { TenantLookup } from '../../contracts/tenant.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Access } from './access.ts';
import type { KurrentLimits } from './kurrent-server.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import type { SubscriptionSlots } from './subscription-slots.ts';

export interface KurrentContext {
  readonly store: EventStore;
  readonly protocol: Protocol;
  readonly limits: KurrentLimits;
  readonly access: Access;
  readonly tenants: TenantLookup | undefined;
  readonly subscriptions: SubscriptionSlots;
  readonly observer: Observer;
  readonly clock: Clock;
  /** Fires when the server stops: live subscriptions end. */
  readonly stopping: AbortSignal;
}
