// Notifications that leave by e-mail and webhook. The outbox holds who is to be told what; the address is looked
// up when it is sent, so that no copy of it lies anywhere, and one that was changed or forgotten counts at once.

import type { DestinationSettings } from '../delivery/create-delivery.ts';
import type { DeliveryMessage } from '../delivery/delivery-message.ts';
import type { Destination } from '../delivery/destination.ts';
import type { IntegrationMessage, OutboxProjectorDefinition } from '../outbox/outbox-projector.ts';
import type { ModuleContext } from '../platform/modules/platform-module.ts';
import { deliveryIdOf, toldBy } from './customer-bus.ts';
import { customerContact, type CustomerContact } from './customer-contact.ts';
import { inboxDelivered, inboxReminded } from './customer-events.ts';
import type { Notice } from './customer-schemas.ts';

/** By channel, what chooses the destination. */
export const customerIntegrations = { email: 'email:notify', webhook: 'webhook:notify' } as const;

type OutsideChannel = keyof typeof customerIntegrations;

/** `to` are the channels that somebody sends for: for others nothing piles up. */
export function customerOutbox(to: readonly OutsideChannel[]): OutboxProjectorDefinition {
  return {
    name: 'sub:notify:outbox:v1',
    filter: { types: [inboxDelivered.type, inboxReminded.type] },
    mapper: {
      map(event) {
        const told = toldBy(event);
        if (told === undefined) return undefined;
        const { notice, channels, step } = told;
        const customerId = event.aggregate.id;
        const { nag: _nag, mergeMs: _merge, ...words } = notice;
        return to
          .filter((channel) => channels.includes(channel))
          .map((channel): IntegrationMessage => ({
            integrationType: customerIntegrations[channel],
            eventType: event.type,
            payload: { customerId, ...words, reminder: step },
            orderingKey: customerId,
            headers: {
              idempotencyKey: `${event.tenant}|notify|${channel}|${customerId}.${deliveryIdOf(told)}`,
            },
          }));
      },
    },
  };
}

type Words = Notice & { readonly customerId: string; readonly reminder: number };

/** Gives `send` the mail as the payload: `{ to, subject, text }`, as `composeNotificationMail` reads it. */
export function customerMails(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
): DestinationSettings {
  return withContact(destination, { load }, ({ email }, words) =>
    email === undefined ? undefined : { to: email, subject: subjectOf(words), text: textOf(words) },
  );
}

/** Gives `send` the notification with the URL that it goes to as `webhookUrl`. */
export function customerWebhooks(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
): DestinationSettings {
  return withContact(destination, { load }, ({ webhookUrl }, words) =>
    webhookUrl === undefined ? undefined : { ...words, webhookUrl },
  );
}

function withContact(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
  compose: (
    contact: CustomerContact,
    words: Words,
  ) => Readonly<Record<string, unknown>> | undefined,
): DestinationSettings {
  const settings = typeof destination === 'function' ? { send: destination } : destination;
  const { timeoutMs } = settings.send;
  const send: Destination = async (message, context) => {
    // Written by the mapper above.
    const words = message.payload as unknown as Words;
    const { tenantId: tenant = '' } = message;
    const address = { tenant, id: words.customerId, signal: context.signal };
    const { state: contact } = await load(customerContact, address);
    const payload = compose(contact, words);
    if (payload === undefined) return { kind: 'sent', skipped: 'the customer has no address' };
    return settings.send({ ...message, payload }, context);
  };
  return { ...settings, send: Object.assign(send, { timeoutMs }) };
}

/**
 * What `smtpDestination` composes mails to customers by.
 *
 * @example
 * import { smtpDestination } from 'millrace/adapters/smtp';
 * import { composeNotificationMail, notifications } from 'millrace/customers';
 *
 * const email = await smtpDestination({
 *   transport: 'smtp://localhost:2525',
 *   from: 'Shop <shop@example.org>',
 *   compose: composeNotificationMail,
 * });
 * export default notifications({ email });
 */
export function composeNotificationMail({ payload }: Pick<DeliveryMessage, 'payload'>): {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
} {
  const { to, subject, text } = payload;
  return { to: String(to), subject: String(subject), text: String(text) };
}

function subjectOf({ title, count, category, reminder }: Words): string {
  // A line break would begin another header.
  const line = title.replaceAll(/[\r\n]+/g, ' ');
  const shown = count > 1 && category !== 'digest' ? `${line} (${count})` : line;
  return reminder === 0 ? shown : `Reminder ${reminder}: ${shown}`;
}

function textOf({ title, body, digest }: Words): string {
  if (digest === undefined) return body ?? title;
  const lines = digest.items.map((item) =>
    item.count > 1 ? `- ${item.title} (${item.count})` : `- ${item.title}`,
  );
  return [`${digest.from} to ${digest.to}`, '', ...lines].join('\n');
}
