// What can happen to a customer's inbox. Times are the inbox's own: they never run backwards in its stream.

import { Type } from '../contracts/type.ts';
import { defineCommand } from '../contracts/define-command.ts';
import { defineEvent } from '../contracts/define-event.ts';
import { subjectLimits } from '../contracts/subject-tokens.ts';
import {
  customerIdSchema,
  fields,
  messageSchema,
  noticeSchema,
  notificationIdSchema,
  payload,
  preferencesSchema,
} from './customer-schemas.ts';
import { customerLimits as limits } from './customer-limits.ts';

const { instant: at, channelList, origin, closed, oneOf, text } = fields;
const count = Type.Integer({ minimum: 1 });
const by = Type.String({ minLength: 1, maxLength: 128 });

/** The first thing that happens: there is such a customer. */
export const inboxOpened = defineEvent(
  'customer-inbox.opened.v1',
  payload(Type.Object({ at }, closed)),
);
export const inboxConfigured = defineEvent(
  'customer-inbox.configured.v1',
  payload(Type.Object({ at, preferences: preferencesSchema }, closed)),
);
/** The customer does not want to be told of this category. */
export const inboxSuppressed = defineEvent(
  'customer-inbox.suppressed.v1',
  payload(Type.Object({ at, notice: noticeSchema }, closed)),
);
/** It is quiet: it waits. */
export const inboxHeld = defineEvent(
  'customer-inbox.held.v1',
  payload(Type.Object({ at, notice: noticeSchema, until: at }, closed)),
);
export const inboxDelivered = defineEvent(
  'customer-inbox.delivered.v1',
  payload(Type.Object({ at, notice: noticeSchema, channels: channelList }, closed)),
);
/** Another one like it came within its window. */
export const inboxMerged = defineEvent(
  'customer-inbox.merged.v1',
  payload(
    Type.Object(
      { at, notificationId: notificationIdSchema, mergedId: notificationIdSchema, count },
      closed,
    ),
  ),
);
export const digestOpened = defineEvent(
  'customer-inbox.digest-opened.v1',
  payload(
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
  payload(
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
/** Its window is over: what comes later belongs to the next. */
export const digestClosed = defineEvent(
  'customer-inbox.digest-closed.v1',
  payload(Type.Object({ at, digestId: notificationIdSchema, count }, closed)),
);
/** Nobody has acknowledged it: once more. */
export const inboxReminded = defineEvent(
  'customer-inbox.reminded.v1',
  payload(
    Type.Object(
      {
        at,
        notice: noticeSchema,
        /** The first reminder is 1. */
        step: count,
        channels: channelList,
        /** Null: it was the last one. */
        nextAt: Type.Union([at, Type.Null()]),
      },
      closed,
    ),
  ),
);
export const inboxEscalated = defineEvent(
  'customer-inbox.escalated.v1',
  payload(
    Type.Object(
      {
        at,
        notice: noticeSchema,
        step: count,
        to: Type.Optional(customerIdSchema),
        /** Of the copy at the other customer. */
        copyId: Type.Optional(notificationIdSchema),
      },
      closed,
    ),
  ),
);
export const inboxAcknowledged = defineEvent(
  'customer-inbox.acknowledged.v1',
  payload(
    Type.Object(
      {
        at,
        notificationId: notificationIdSchema,
        by,
        /** The others that are the same one: whoever acknowledges one has acknowledged all. */
        origin: Type.Optional(origin),
        copy: Type.Optional(origin),
      },
      closed,
    ),
  ),
);
/** Something is due then: the customer's clock comes back. */
export const wakeSet = defineEvent(
  'customer-inbox.wake-set.v1',
  payload(Type.Object({ at, no: count, wakeAt: at }, closed)),
);

export const notifyCustomer = defineCommand('customer-inbox.notify', payload(messageSchema));
export const configureCustomer = defineCommand(
  'customer-inbox.configure',
  payload(Type.Object({ preferences: preferencesSchema }, closed)),
);
export const acknowledgeNotification = defineCommand(
  'customer-inbox.acknowledge',
  payload(Type.Object({ notificationId: notificationIdSchema, by }, closed)),
);
/** Brings to its end whatever is due; anybody may ask, at any time. */
export const wakeInbox = defineCommand(
  'customer-inbox.wake',
  payload(Type.Object({ no: count }, closed)),
);

/** Where to reach a customer: personal data, in events that carry the customer as their data subject. */
const contact = payload(
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
 * What can happen to a customer's inbox, for subscriptions and reactors of your own.
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
 * What can be asked of a customer's inbox, for reactors and sagas of your own.
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
 *   from: 'now',
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
