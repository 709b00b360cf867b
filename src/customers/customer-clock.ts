// Comes back to an inbox when something is due there: a saga for each time that was set, which does nothing but
// wait. What is due, the inbox decides itself; come twice, it finds nothing to do.

import { saga } from '../reactors/saga.ts';
import { wakeInbox, wakeSet } from './customer-events.ts';

const nobody: { readonly customerId: string; readonly no: number } = { customerId: '', no: 1 };

export const customerClock = saga({
  bc: 'notify',
  name: 'customer-clock',
  version: 1,
  from: 'start',
  events: [wakeSet],
  startOn: ['customer-inbox.wake-set.v1'],
  // No customer has a dot in its id.
  correlateBy: ({ aggregate, payload }) => `${aggregate.id}.${payload.no}`,
  initial: nobody,
  on: {
    'customer-inbox.wake-set.v1': ({ aggregate, payload: { no, wakeAt } }, { nowMs }) => [
      { data: { customerId: aggregate.id, no } },
      { timer: 'due', afterMs: Math.max(1, Date.parse(wakeAt) - nowMs) },
    ],
  },
  steps: {
    wake: {
      onDone: () => [{ end: 'completed' }],
      // Nobody is there any more to be told.
      onDenied: () => [{ end: 'completed' }],
    },
  },
  timers: {
    due: ({ data: { customerId, no } }) => [
      { run: 'wake', id: customerId, command: wakeInbox({ no }) },
    ],
  },
});
