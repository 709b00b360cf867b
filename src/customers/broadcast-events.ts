// What can happen to a broadcast: it is published, and reaches one page of customers after the other.

import { Type } from '../contracts/type.ts';
import { defineCommand } from '../contracts/define-command.ts';
import { defineEvent } from '../contracts/define-event.ts';
import { subjectActions } from '../contracts/subjects.ts';
import { customerLimits as limits } from './customer-limits.ts';
import { fields, payload } from './customer-schemas.ts';

const { instant: at, closed, oneOf, text } = fields;

const broadcastCategories = subjectActions.notify.broadcast;
export type BroadcastCategory = (typeof broadcastCategories)[number];

export const broadcastFields = {
  category: oneOf(broadcastCategories),
  title: text(limits.titleCharsMax),
  body: Type.Optional(text(limits.bodyCharsMax)),
};
const reached = Type.Integer({ minimum: 0 });

export const broadcastPublished = defineEvent(
  'broadcast.published.v1',
  payload(Type.Object({ at, ...broadcastFields }, closed)),
);
export const broadcastAdvanced = defineEvent(
  'broadcast.advanced.v1',
  payload(
    Type.Object(
      {
        /** Behind the customers that were told. */
        cursor: Type.String({ minLength: 1, maxLength: 1_000 }),
        reached,
      },
      closed,
    ),
  ),
);
export const broadcastCompleted = defineEvent(
  'broadcast.completed.v1',
  payload(Type.Object({ reached }, closed)),
);
/**
 * Tells all customers of the tenant something.
 *
 * @example
 * import { publishBroadcast } from 'millrace/customers';
 *
 * console.log(publishBroadcast({ category: 'maintenance', title: 'Sunday, 2 to 3' }).type);
 */
export const publishBroadcast = defineCommand(
  'broadcast.publish',
  payload(Type.Object(broadcastFields, closed)),
);
export const advanceBroadcast = defineCommand(
  'broadcast.advance',
  payload(
    Type.Object(
      {
        /** Of those before this page. */
        before: Type.Integer({ minimum: 0 }),
        reached,
        /** Null: that was all. */
        cursor: Type.Union([Type.String({ minLength: 1, maxLength: 1_000 }), Type.Null()]),
      },
      closed,
    ),
  ),
);

/**
 * What can happen to a broadcast.
 *
 * @example
 * import { broadcastEvents } from 'millrace/customers';
 *
 * console.log(broadcastEvents.published.type); // broadcast.published.v1
 */
export const broadcastEvents = {
  published: broadcastPublished,
  advanced: broadcastAdvanced,
  completed: broadcastCompleted,
} as const;
