// Reactions to the events of an inbox: escalation to another customer, and the wake-up at the next due time.

import { reactor, saga } from 'millrace/reactors';
import {
  acknowledgeNotification,
  inboxAcknowledged,
  inboxEscalated,
  notifyCustomer,
  wakeInbox,
  wakeSet,
} from './customer-events.ts';
import { present } from './customer-schemas.ts';
import type { Counterpart } from './customer-state.ts';

/** Copies an unacknowledged notification to another customer, and passes an acknowledgement to the other copy. */
export const customerEscalation = reactor({
  name: 'sub:notify:escalation:v1',
  from: 'start',
  events: [inboxEscalated, inboxAcknowledged],
  // The other inbox is full or no longer holds the notification; neither can be corrected here.
  onRejected: 'ignore',
  on: {
    'customer-inbox.escalated.v1': ({ payload: { notice, to, copyId }, aggregate }) => {
      if (to === undefined || copyId === undefined) return undefined;
      const { notificationId, title, body } = notice;
      return {
        id: to,
        command: notifyCustomer(
          present({
            notificationId: copyId,
            category: 'alert' as const,
            title,
            body,
            origin: { customerId: aggregate.id, notificationId },
          }),
        ),
      };
    },
    'customer-inbox.acknowledged.v1': ({ payload: { origin, copy, by } }) =>
      [origin, copy]
        .filter((each): each is Counterpart => each !== undefined)
        .map(({ customerId, notificationId }) => ({
          id: customerId,
          command: acknowledgeNotification({ notificationId, by, listed: {} }),
        })),
  },
});

const initialClock: { readonly customerId: string; readonly no: number } = {
  customerId: '',
  no: 1,
};

/**
 * Wakes an inbox when something is due: one saga per wake-up time. The inbox itself decides what is due, so a
 * duplicate wake-up has no effect.
 */
export const customerClock = saga({
  bc: 'notify',
  name: 'customer-clock',
  version: 1,
  from: 'start',
  events: [wakeSet],
  startOn: ['customer-inbox.wake-set.v1'],
  // Customer ids contain no dot.
  correlateBy: ({ aggregate, payload }) => `${aggregate.id}.${payload.no}`,
  initial: initialClock,
  on: {
    'customer-inbox.wake-set.v1': ({ aggregate, payload: { no, wakeAt } }, { nowMs }) => [
      { data: { customerId: aggregate.id, no } },
      { timer: 'due', afterMs: Math.max(1, Date.parse(wakeAt) - nowMs) },
    ],
  },
  steps: {
    wake: {
      onDone: () => [{ end: 'completed' }],
      onDenied: () => [{ end: 'completed' }],
    },
  },
  timers: {
    due: ({ data: { customerId, no } }) => [
      { run: 'wake', id: customerId, command: wakeInbox({ no }) },
    ],
  },
});
