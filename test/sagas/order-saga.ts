// The saga of these tests and the aggregate of its commands: every effect is an event in the ledger of
// the order, which shows what happened in which order.

import { z } from 'zod';
import { defineAggregate, CommandRejected } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { saga } from '../../src/reactors/index.ts';

const order = z.object({ orderId: z.string() });
export const placed = defineEvent('order.placed.v1', order);
export const paid = defineEvent('payment.received.v1', order);

const entry = z.object({ orderId: z.string(), what: z.string() });
const entered = defineEvent('ledger.entered.v1', entry);
const enter = defineCommand('ledger.enter', entry);

export const ledger = defineAggregate({
  bc: 'shop',
  name: 'ledger',
  version: 1,
  events: [entered],
  commands: [enter],
  initial: 0,
  evolve: { 'ledger.entered.v1': (count) => count + 1 },
  decide: {
    'ledger.enter': ({ orderId, what }) => {
      if (what === 'ship' && kindOf(orderId) === 'rejected') {
        throw new CommandRejected('sold-out', 'there is nothing to ship');
      }
      return entered({ orderId, what });
    },
  },
});

export type OrderKind = 'completed' | 'rejected' | 'unpaid';
const kinds: readonly OrderKind[] = ['completed', 'rejected', 'unpaid'];

/** The number of the order decides its outcome: `o17`. */
export function kindOf(orderId: string): OrderKind {
  return kinds[Number(orderId.slice(1)) % kinds.length] as OrderKind;
}

export const expectedEntries: Readonly<Record<OrderKind, readonly string[]>> = {
  completed: ['reserve', 'charge', 'ship'],
  rejected: ['reserve', 'charge', 'refund', 'release'],
  unpaid: ['reserve', 'release'],
};

const enterInto = (orderId: string, what: string) => ({
  id: orderId,
  command: enter({ orderId, what }),
});

export const orderSaga = saga({
  bc: 'shop',
  name: 'order-flow',
  version: 1,
  from: 'start',
  events: [placed, paid],
  startOn: ['order.placed.v1'],
  correlateBy: ({ payload }) => payload.orderId,
  initial: {},
  on: {
    'order.placed.v1': ({ payload: { orderId } }) => [
      { run: 'reserve', ...enterInto(orderId, 'reserve') },
      // The timeout is long for paid orders, because the machine may be slow.
      { timer: 'payment', afterMs: kindOf(orderId) === 'unpaid' ? 1_000 : 600_000 },
    ],
    'payment.received.v1': ({ payload: { orderId } }) => [
      { cancel: 'payment' },
      { run: 'charge', ...enterInto(orderId, 'charge') },
    ],
  },
  steps: {
    reserve: { compensate: ({ key }) => enterInto(key, 'release') },
    charge: {
      onDone: ({ key }) => [{ run: 'ship', ...enterInto(key, 'ship') }, { end: 'completed' }],
      compensate: ({ key }) => enterInto(key, 'refund'),
    },
    ship: {},
  },
  timers: { payment: () => [{ end: 'failed', reason: 'not paid in time' }] },
  shards: 3,
  lanes: 4,
  retry: { initialMs: 10, factor: 2, capMs: 200, jitterMs: 5, attemptsMax: 8 },
});
