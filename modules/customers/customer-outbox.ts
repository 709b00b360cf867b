// Notifications by e-mail and webhook. The outbox stores the customer id and the content. The address is read when
// the message is sent: it is stored in one place only, and a change or erasure takes effect at once.

import type { DeliveryMessage, Destination, DestinationSettings } from 'millrace/delivery';
import type { IntegrationMessage, OutboxProjectorDefinition } from 'millrace/outbox';
import type { ModuleContext } from 'millrace/platform';
import { contentOf, deliveryIdOf, deliveryOf, titleOf } from './customer-bus.ts';
import { customerContact, type CustomerContact } from './customer-contact.ts';
import { inboxDelivered, inboxReminded } from './customer-events.ts';
import type { Notice } from './customer-schemas.ts';

/** The integration type of each channel. */
export const customerIntegrations = { email: 'email:notify', webhook: 'webhook:notify' } as const;

type OutboxChannel = keyof typeof customerIntegrations;

/** Writes messages only for channels with a destination: others would wait in the outbox forever. */
export function customerOutbox(enabled: readonly OutboxChannel[]): OutboxProjectorDefinition {
  return {
    name: 'sub:notify:outbox:v1',
    filter: { types: [inboxDelivered.type, inboxReminded.type] },
    mapper: {
      map(event) {
        const delivery = deliveryOf(event);
        if (delivery === undefined) return undefined;
        const { notice, channels, step } = delivery;
        const customerId = event.aggregate.id;
        return enabled
          .filter((channel) => channels.includes(channel))
          .map((channel): IntegrationMessage => ({
            integrationType: customerIntegrations[channel],
            eventType: event.type,
            payload: { customerId, ...contentOf(notice), reminder: step },
            orderingKey: customerId,
            headers: {
              idempotencyKey: `${event.tenant}|notify|${channel}|${customerId}.${deliveryIdOf(delivery)}`,
            },
          }));
      },
    },
  };
}

type OutboxPayload = Notice & { readonly customerId: string; readonly reminder: number };

/** Passes `{ to, subject, text }` to the destination, as `composeNotificationMail` expects it. */
export function customerMails(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
): DestinationSettings {
  return withContact(destination, { load }, ({ email }, content) =>
    email === undefined
      ? undefined
      : { to: email, subject: subjectOf(content), text: textOf(content) },
  );
}

/** Passes the notification and its `webhookUrl` to the destination. */
export function customerWebhooks(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
): DestinationSettings {
  return withContact(destination, { load }, ({ webhookUrl }, content) =>
    webhookUrl === undefined ? undefined : { ...content, webhookUrl },
  );
}

function withContact(
  destination: Destination | DestinationSettings,
  { load }: Pick<ModuleContext, 'load'>,
  compose: (
    contact: CustomerContact,
    content: OutboxPayload,
  ) => Readonly<Record<string, unknown>> | undefined,
): DestinationSettings {
  const settings = typeof destination === 'function' ? { send: destination } : destination;
  const { timeoutMs } = settings.send;
  const send: Destination = async (message, context) => {
    // `customerOutbox` wrote this payload.
    const content = message.payload as unknown as OutboxPayload;
    const { tenantId: tenant = '' } = message;
    const address = { tenant, id: content.customerId, signal: context.signal };
    const { state: contact } = await load(customerContact, address);
    const payload = compose(contact, content);
    if (payload === undefined) return { kind: 'sent', skipped: 'the customer has no address' };
    return settings.send({ ...message, payload }, context);
  };
  return { ...settings, send: Object.assign(send, { timeoutMs }) };
}

/**
 * The option `compose` of `smtpDestination` for emails to customers.
 *
 * @example
 * import { smtpDestination } from 'millrace/destinations/smtp';
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

function subjectOf(content: OutboxPayload): string {
  // A line break would start another mail header.
  const line = titleOf(content).replaceAll(/[\r\n]+/g, ' ');
  return content.reminder === 0 ? line : `Reminder ${content.reminder}: ${line}`;
}

function textOf({ title, body, digest }: OutboxPayload): string {
  if (digest === undefined) return body ?? title;
  const lines = digest.items.map((item) =>
    item.count > 1 ? `- ${item.title} (${item.count})` : `- ${item.title}`,
  );
  return [`${digest.from} to ${digest.to}`, '', ...lines].join('\n');
}
