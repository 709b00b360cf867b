// The module: customers' inboxes and broadcasts, what follows from them, what queries see, and what leaves.

import type { DestinationSettings } from '../delivery/create-delivery.ts';
import type { Destination } from '../delivery/destination.ts';
import { defineModule, type PlatformModule } from '../platform/modules/platform-module.ts';
import { broadcast } from './broadcast.ts';
import { broadcastFanOut } from './broadcast-fan-out.ts';
import { broadcastProjection } from './broadcast-projection.ts';
import { customerBus, type CustomerBusOptions } from './customer-bus.ts';
import { customerClock } from './customer-clock.ts';
import { customerContact } from './customer-contact.ts';
import { customerEscalation } from './customer-escalation.ts';
import { customerInbox } from './customer-inbox.ts';
import { notificationProjection } from './customer-notifications.ts';
import {
  customerIntegrations,
  customerMails,
  customerOutbox,
  customerWebhooks,
} from './customer-outbox.ts';
import { customerProjection } from './customer-projection.ts';
import { customerWeb } from './customer-web.ts';

export interface NotificationsOptions extends CustomerBusOptions {
  /** Sends mails: its payload is `{ to, subject, text }`. Default: nobody gets any. */
  readonly email?: Destination | DestinationSettings;
  /** Posts to webhooks: its payload holds `webhookUrl`. Default: nothing is posted. */
  readonly webhook?: Destination | DestinationSettings;
}

/**
 * Customers and broadcasts, as a module of the platform.
 *
 * @example
 * import { notifications } from 'millrace/customers';
 * import { defineConfig } from 'millrace/platform';
 *
 * export default defineConfig({ modules: [notifications()] });
 */
export function notifications(options: NotificationsOptions = {}): PlatformModule {
  const { email, webhook } = options;
  const outside = [
    ...(email === undefined ? [] : (['email'] as const)),
    ...(webhook === undefined ? [] : (['webhook'] as const)),
  ];
  return defineModule({
    name: 'notify',
    aggregates: [customerInbox, customerContact, broadcast],
    projections: [customerProjection, notificationProjection, broadcastProjection],
    reactors: (context) => [customerEscalation, broadcastFanOut(context)],
    sagas: [customerClock],
    subscriptions: (context) => [customerBus(context, options)],
    ...(outside.length === 0 ? {} : { outbox: [customerOutbox(outside)] }),
    destinations: (context) => ({
      ...(email === undefined
        ? {}
        : { [customerIntegrations.email]: customerMails(email, context) }),
      ...(webhook === undefined
        ? {}
        : { [customerIntegrations.webhook]: customerWebhooks(webhook, context) }),
    }),
    web: (context) => customerWeb(context),
  });
}
