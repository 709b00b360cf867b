// The module `notify`: inboxes of customers, broadcasts, and everything that the platform runs for them.

import type { Destination, DestinationSettings } from 'millrace/delivery';
import { defineModule, type PlatformModule } from 'millrace/platform';
import { broadcast, broadcastFanOut, broadcastProjection } from './broadcast.ts';
import { customerBus, type CustomerBusOptions } from './customer-bus.ts';
import { customerContact } from './customer-contact.ts';
import { customerInbox } from './customer-inbox.ts';
import { createNotifier } from './customer-notifier.ts';
import {
  customerIntegrations,
  customerMails,
  customerOutbox,
  customerWebhooks,
} from './customer-outbox.ts';
import { customerProjection, notificationProjection } from './customer-projections.ts';
import { customerClock, customerEscalation } from './customer-reactions.ts';
import { notifyRoutes } from './customer-routes.ts';
import { customerSocket } from './customer-socket.ts';

export interface NotificationsOptions extends CustomerBusOptions {
  /** Sends e-mail; the payload is `{ to, subject, text }`. Default: no e-mail. */
  readonly email?: Destination | DestinationSettings | undefined;
  /** Calls webhooks; the payload contains `webhookUrl`. Default: no webhooks. */
  readonly webhook?: Destination | DestinationSettings | undefined;
}

/**
 * Customer notifications and broadcasts as a module of the platform.
 *
 * @example
 * import { notifications } from 'millrace/customers';
 * import { defineConfig } from 'millrace/platform';
 *
 * export default defineConfig({ modules: [notifications()] });
 */
export function notifications(options: NotificationsOptions = {}): PlatformModule {
  const { email, webhook } = options;
  const channels = (['email', 'webhook'] as const).filter(
    (channel) => options[channel] !== undefined,
  );
  return defineModule({
    name: 'notify',
    uses: ['bus'],
    aggregates: [customerInbox, customerContact, broadcast],
    commands: { 'broadcast.publish': 'append' },
    projections: [customerProjection, notificationProjection, broadcastProjection],
    reactors: (context) => [customerEscalation, broadcastFanOut(context)],
    sagas: [customerClock],
    subscriptions: (context) => [customerBus(context, options)],
    outbox: channels.length === 0 ? [] : [customerOutbox(channels)],
    destinations: (context) => ({
      ...(email && { [customerIntegrations.email]: customerMails(email, context) }),
      ...(webhook && { [customerIntegrations.webhook]: customerWebhooks(webhook, context) }),
    }),
    web(context) {
      const notifier = createNotifier(context);
      return { routes: notifyRoutes(notifier), socket: customerSocket(notifier, context) };
    },
  });
}
