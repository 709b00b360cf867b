// What an application tells the module.

import type { DeliveryOptions } from '../delivery/create-delivery.ts';
import type { Observer } from '../foundation/observer.ts';
import type { Deliver } from '../outbox/attempt-delivery.ts';
import type { OutboxDispatcherOptions } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionDefinition } from '../subscriptions/subscription.ts';
import type { SubscriptionOptions } from '../subscriptions/subscription-runner.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import type { HealthThresholds } from './decide-health.ts';

export interface MillraceModuleOptions {
  /** Kebab-case; names of subscriptions that are not given begin with it: `sub:<service>:…`. */
  readonly service?: string | undefined;
  /** A URL that `openEventStore` takes, or a store, which is closed with the application. */
  readonly store?: string | (EventStore & Partial<SubscriptionHost>) | undefined;
  /** Default: where the store is, if that is by a URL. False: none. */
  readonly outbox?: MillraceOutboxOptions | false | undefined;
  /** Beside those of `@OnEvent`. */
  readonly subscriptions?: readonly SubscriptionDefinition[] | undefined;
  /** Of all subscriptions and projectors: leases elsewhere, `onAlert`, tuning. */
  readonly running?: Omit<SubscriptionOptions, 'observer'> | undefined;
  /** False: nothing runs in this process, which appends, enqueues and asks only. Default: true. */
  readonly run?: boolean | undefined;
  readonly health?: Partial<HealthThresholds> | undefined;
  /** Default: Nest's logger. */
  readonly observer?: Observer | undefined;
}

export interface MillraceOutboxOptions {
  /** A URL that `openOutboxLedger` takes, or a ledger, which is closed with the application. Default: the store's URL. */
  readonly ledger?: string | OutboxLedger | undefined;
  /** The ledger is in the store's database: rows and checkpoint are one commit. Default: whether their URLs are the same. */
  readonly sharesDatabase?: boolean | undefined;
  /** Of the projector of `@MapToOutbox`. Its name is `sub:<service>:outbox:v1` by default. */
  readonly projector?: Partial<Omit<OutboxProjectorDefinition, 'filter' | 'mapper'>> | undefined;
  readonly projectors?: readonly OutboxProjectorDefinition[] | undefined;
  /** Where messages go; with neither this nor `deliver` they wait for another process. */
  readonly destinations?: DeliveryOptions['destinations'] | undefined;
  /** Instead of `destinations`. */
  readonly deliver?: Deliver | undefined;
  readonly dispatcher?:
    | Omit<OutboxDispatcherOptions, 'deliver' | 'ledger' | 'observer'>
    | undefined;
}
