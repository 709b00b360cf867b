// Events and commands of an inbox and of a contact. The times in the events of one inbox never decrease.

import { compileSchema, defineCommand, defineEvent, Type, type EventOf } from 'millrace/contracts';
import {
  channelList,
  contactSchema,
  idSchema,
  instant as at,
  messageSchema,
  noticeSchema,
  object,
  origin,
  preferencesSchema,
  schemaOf,
  sentCategory,
  text,
  type Notice,
} from './customer-schemas.ts';
import { customerLimits as limits } from './customer-limits.ts';

const count = Type.Integer({ minimum: 1 });
const by = Type.String({ minLength: 1, maxLength: 128 });

/** The first event of every inbox. */
export const inboxOpened = defineEvent('customer-inbox.opened.v1', schemaOf({ at }));
export const inboxConfigured = defineEvent(
  'customer-inbox.configured.v1',
  schemaOf({ at, preferences: preferencesSchema }),
);
/** The customer has turned this category off. */
export const inboxSuppressed = defineEvent(
  'customer-inbox.suppressed.v1',
  schemaOf({ at, notice: noticeSchema }),
);
/** Held until the end of the quiet hours. */
export const inboxHeld = defineEvent(
  'customer-inbox.held.v1',
  schemaOf({ at, notice: noticeSchema, until: at }),
);
export const inboxDelivered = defineEvent(
  'customer-inbox.delivered.v1',
  schemaOf({ at, notice: noticeSchema, channels: channelList }),
);
/** Another notification with the same key arrived within the merge window. */
export const inboxMerged = defineEvent(
  'customer-inbox.merged.v1',
  schemaOf({ at, notificationId: idSchema, mergedId: idSchema, count }),
);
export const digestOpened = defineEvent(
  'customer-inbox.digest-opened.v1',
  schemaOf({
    at,
    digestId: idSchema,
    key: text(limits.keyCharsMax),
    windowMs: Type.Integer({ minimum: 1 }),
    from: at,
    to: at,
  }),
);
export const digestAdded = defineEvent(
  'customer-inbox.digest-added.v1',
  schemaOf({
    at,
    digestId: idSchema,
    notificationId: idSchema,
    category: sentCategory,
    title: text(limits.titleCharsMax),
    key: Type.Optional(text(limits.keyCharsMax)),
  }),
);
/** The window of the digest has ended. */
export const digestClosed = defineEvent(
  'customer-inbox.digest-closed.v1',
  schemaOf({ at, digestId: idSchema, count }),
);
/** Delivered again because there is no acknowledgement. */
export const inboxReminded = defineEvent(
  'customer-inbox.reminded.v1',
  schemaOf({
    at,
    notice: noticeSchema,
    /** The number of the reminder, from 1. */
    step: count,
    channels: channelList,
    /** The customer has turned the category off: not delivered, but an escalation can follow. */
    isSuppressed: Type.Optional(Type.Literal(true)),
    /** Null after the last reminder. */
    nextAt: Type.Union([at, Type.Null()]),
  }),
);
export const inboxEscalated = defineEvent(
  'customer-inbox.escalated.v1',
  schemaOf({
    at,
    notice: noticeSchema,
    step: count,
    to: Type.Optional(idSchema),
    /** The id of the copy in the inbox of the other customer. */
    copyId: Type.Optional(idSchema),
  }),
);
export const inboxAcknowledged = defineEvent(
  'customer-inbox.acknowledged.v1',
  schemaOf({
    at,
    notificationId: idSchema,
    by,
    /** Copies of the notification in other inboxes, which this acknowledgement covers. */
    origin: Type.Optional(origin),
    copy: Type.Optional(origin),
  }),
);
/** The next time at which work is due in this inbox. */
export const wakeSet = defineEvent(
  'customer-inbox.wake-set.v1',
  schemaOf({ at, no: count, wakeAt: at }),
);

export const inboxEvents = [
  inboxOpened,
  inboxConfigured,
  inboxSuppressed,
  inboxHeld,
  inboxDelivered,
  inboxMerged,
  digestOpened,
  digestAdded,
  digestClosed,
  inboxReminded,
  inboxEscalated,
  inboxAcknowledged,
  wakeSet,
] as const;
export type InboxEvent = EventOf<(typeof inboxEvents)[number]>;
/** Event type → payload. */
export type InboxPayloads = { [Event in InboxEvent as Event['type']]: Event['payload'] };

/** The notification or digest that an event is about; absent in events about the inbox itself. */
export function notificationIdOf(payload: object): string | undefined {
  const { digestId, notice, notificationId } = payload as {
    readonly digestId?: string;
    readonly notice?: Notice;
    readonly notificationId?: string;
  };
  return digestId ?? notice?.notificationId ?? notificationId;
}

export const notifyCustomer = defineCommand('customer-inbox.notify', compileSchema(messageSchema));
export const configureCustomer = defineCommand(
  'customer-inbox.configure',
  schemaOf({ preferences: preferencesSchema }),
);
export const acknowledgeNotification = defineCommand(
  'customer-inbox.acknowledge',
  schemaOf({
    notificationId: idSchema,
    by,
    /** Set if the read model lists the notification: the inbox itself remembers recent ones only. */
    listed: Type.Optional(object({ origin: Type.Optional(origin), copy: Type.Optional(origin) })),
  }),
);
/** Performs all work that is due; harmless at any time. */
export const wakeInbox = defineCommand('customer-inbox.wake', schemaOf({ no: count }));

/** Personal data: the events name the customer as their data subject. */
const contact = compileSchema(contactSchema);
export const contactChanged = defineEvent('customer-contact.changed.v1', contact);
export const changeContact = defineCommand('customer-contact.change', contact);

/**
 * The events of inboxes and contacts, for your own subscriptions and reactors.
 *
 * @example
 * import { customerEvents } from 'millrace/customers';
 * import { subscription } from 'millrace/subscriptions';
 *
 * const escalations = subscription({
 *   name: 'sub:ops:escalations:v1',
 *   filter: { types: [customerEvents.escalated.type] },
 *   handler: (event) => console.log(event.aggregate.id),
 * });
 */
export const customerEvents = {
  opened: inboxOpened,
  configured: inboxConfigured,
  suppressed: inboxSuppressed,
  held: inboxHeld,
  delivered: inboxDelivered,
  merged: inboxMerged,
  digestOpened,
  digestAdded,
  digestClosed,
  reminded: inboxReminded,
  escalated: inboxEscalated,
  acknowledged: inboxAcknowledged,
  wakeSet,
  contactChanged,
} as const;

/**
 * The commands of inboxes and contacts, for your own reactors and sagas.
 *
 * @example
 * import { defineEvent } from 'millrace/contracts';
 * import { customerCommands } from 'millrace/customers';
 * import { reactor } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const failed = defineEvent('payment.failed.v1', z.object({ customerId: z.string() }));
 * const warnings = reactor({
 *   name: 'sub:shop:payment-warnings:v1',
 *   events: [failed],
 *   from: 'end',
 *   onRejected: 'ignore',
 *   on: {
 *     'payment.failed.v1': ({ payload, eventId }) => ({
 *       id: payload.customerId,
 *       command: customerCommands.notify({
 *         notificationId: eventId,
 *         category: 'alert',
 *         title: 'A payment failed',
 *       }),
 *     }),
 *   },
 * });
 */
export const customerCommands = {
  notify: notifyCustomer,
  configure: configureCustomer,
  acknowledge: acknowledgeNotification,
  changeContact,
} as const;
