// From one customer's inbox to another's: what nobody answers goes to somebody else, and whoever acknowledges
// one of the two has acknowledged both.

import { reactor } from '../reactors/reactor.ts';
import {
  acknowledgeNotification,
  inboxAcknowledged,
  inboxEscalated,
  notifyCustomer,
} from './customer-events.ts';
import type { Counterpart } from './customer-state.ts';

export const customerEscalation = reactor({
  name: 'sub:notify:escalation:v1',
  from: 'start',
  events: [inboxEscalated, inboxAcknowledged],
  // An inbox that is full, or has forgotten the notification: there is nobody to tell that.
  onRefused: 'ignore',
  on: {
    'customer-inbox.escalated.v1': ({ payload: { notice, to, copyId }, aggregate }) => {
      if (to === undefined || copyId === undefined) return undefined;
      const { notificationId, title, body } = notice;
      return {
        id: to,
        command: notifyCustomer({
          notificationId: copyId,
          category: 'alert',
          title,
          ...(body === undefined ? {} : { body }),
          origin: { customerId: aggregate.id, notificationId },
        }),
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
