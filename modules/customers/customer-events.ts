// Events and commands of an inbox and of a contact. The times in the events of one inbox never decrease.

import { compileSchema, defineCommand, defineEvent, subjectLimits, Type } from 'millrace/contracts';
import {
  customerIdSchema,
  fields,
  messageSchema,
  noticeSchema,
  notificationIdSchema,
  preferencesSchema,
} from './customer-schemas.ts';
import { customerLimits as limits } from './customer-limits.ts';

const { instant: at, channelList, origin, closed, oneOf, text } = fields;
const count = Type.Integer({ minimum: 1 });
const by = Type.String({ minLength: 1, maxLength: 128 });

/** The first event of every inbox. */
export const inboxOpened = defineEvent(
  'customer-inbox.opened.v1',
  compileSchema(Type.Object({ at }, closed)),
);
export const inboxConfigured = defineEvent(
  'customer-inbox.configured.v1',
  compileSchema(Type.Object({ at, preferences: preferencesSchema }, closed)),
);
/** The customer has turned this category off. */
export const inboxSuppressed = defineEvent(
  'customer-inbox.suppressed.v1',
  compileSchema(Type.Object({ at, notice: noticeSchema }, closed)),
);
/** Held until the end of the quiet hours. */
export const inboxHeld = defineEvent(
  'customer-inbox.held.v1',
  compileSchema(Type.Object({ at, notice: noticeSchema, until: at }, closed)),
);
export const inboxDelivered = defineEvent(
  'customer-inbox.delivered.v1',
  compileSchema(Type.Object({ at, notice: noticeSchema, channels: channelList }, closed)),
);
/** Another notification with the same key arrived within the merge window. */
export const inboxMerged = defineEvent(
  'customer-inbox.merged.v1',
  compileSchema(
    Type.Object(
      { at, notificationId: notificationIdSchema, mergedId: notificationIdSchema, count },
      closed,
    ),
  ),
);
export const digestOpened = defineEvent(
  'customer-inbox.digest-opened.v1',
  compileSchema(
    Type.Object(
      {
        at,
        digestId: notificationIdSchema,
        key: text(limits.keyCharsMax),
        windowMs: Type.Integer({ minimum: 1 }),
        from: at,
        to: at,
      },
      closed,
    ),
  ),
);
export const digestAdded = defineEvent(
  'customer-inbox.digest-added.v1',
  compileSchema(
    Type.Object(
      {
        at,
        digestId: notificationIdSchema,
        notificationId: notificationIdSchema,
        category: oneOf(['alert', 'info', 'maintenance', 'announcement']),
        title: text(limits.titleCharsMax),
        key: Type.Optional(text(limits.keyCharsMax)),
      },
      closed,
    ),
  ),
);
/** The window of the digest has ended. */
export const digestClosed = defineEvent(
  'customer-inbox.digest-closed.v1',
  compileSchema(Type.Object({ at, digestId: notificationIdSchema, count }, closed)),
);
/** Delivered again because there is no acknowledgement. */
export const inboxReminded = defineEvent(
  'customer-inbox.reminded.v1',
  compileSchema(
    Type.Object(
      {
        at,
        notice: noticeSchema,
        /** The number of the reminder, from 1. */
        step: count,
        channels: channelList,
        /** The customer has turned the category off: not delivered, but an escalation can follow. */
        isSuppressed: Type.Optional(Type.Literal(true)),
        /** Null after the last reminder. */
        nextAt: Type.Union([at, Type.Null()]),
      },
      closed,
    ),
  ),
);
export const inboxEscalated = defineEvent(
  'customer-inbox.escalated.v1',
  compileSchema(
    Type.Object(
      {
        at,
        notice: noticeSchema,
        step: count,
        to: Type.Optional(customerIdSchema),
        /** The id of the copy in the inbox of the other customer. */
        copyId: Type.Optional(notificationIdSchema),
      },
      closed,
    ),
  ),
);
export const inboxAcknowledged = defineEvent(
  'customer-inbox.acknowledged.v1',
  compileSchema(
    Type.Object(
      {
        at,
        notificationId: notificationIdSchema,
        by,
        /** The same notification in other inboxes, which this acknowledgement covers. */
        origin: Type.Optional(origin),
        copy: Type.Optional(origin),
      },
      closed,
    ),
  ),
);
/** The next time at which work is due in this inbox. */
export const wakeSet = defineEvent(
  'customer-inbox.wake-set.v1',
  compileSchema(Type.Object({ at, no: count, wakeAt: at }, closed)),
);

export const notifyCustomer = defineCommand('customer-inbox.notify', compileSchema(messageSchema));
export const configureCustomer = defineCommand(
  'customer-inbox.configure',
  compileSchema(Type.Object({ preferences: preferencesSchema }, closed)),
);
export const acknowledgeNotification = defineCommand(
  'customer-inbox.acknowledge',
  compileSchema(
    Type.Object(
      {
        notificationId: notificationIdSchema,
        by,
        /** Set if the read model lists the notification: the inbox itself remembers recent ones only. */
        listed: Type.Optional(
          Type.Object({ origin: Type.Optional(origin), copy: Type.Optional(origin) }, closed),
        ),
      },
      closed,
    ),
  ),
);
/** Performs all work that is due; harmless at any time. */
export const wakeInbox = defineCommand(
  'customer-inbox.wake',
  compileSchema(Type.Object({ no: count }, closed)),
);

/** Personal data: the events name the customer as their data subject. */
const contact = compileSchema(
  Type.Object(
    {
      email: Type.Optional(
        Type.String({ maxLength: 254, pattern: '^[^\\s@<>,;"]+@[^\\s@<>,;"]+$' }),
      ),
      webhookUrl: Type.Optional(Type.String({ maxLength: 2_048, pattern: '^https?://[^\\s]+$' })),
      topic: Type.Optional(
        Type.String({ pattern: `^[A-Za-z0-9_-]{1,${subjectLimits.idCharsMax}}$` }),
      ),
    },
    closed,
  ),
);
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
 *   onRefused: 'ignore',
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
