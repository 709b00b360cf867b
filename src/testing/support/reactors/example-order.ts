// The saga shared by the tests: an order is reserved, charged and shipped, and compensated in reverse.

import { z } from 'zod';
import { defineCommand } from '../../../contracts/define-command.ts';
import { defineEvent } from '../../../contracts/define-event.ts';
import type { BackoffPolicy } from '../../../foundation/backoff.ts';
import { saga } from '../../../reactors/saga.ts';

const order = z.object({ orderId: z.string() });
export const placed = defineEvent('order.placed.v1', order);
export const paid = defineEvent('payment.received.v1', order);
export const withdrawn = defineEvent('order.withdrawn.v1', order);

export const reserve = defineCommand('stock.reserve', order);
export const release = defineCommand('stock.release', order);
export const charge = defineCommand('card.charge', order);
export const refund = defineCommand('card.refund', order);
export const ship = defineCommand('parcel.ship', order);

export const paymentMs = 9_000;
export const expiryMs = 60_000;

export interface OrderOptions {
  readonly retry?: BackoffPolicy;
  readonly onUnanswered?: 'park' | 'compensate';
  readonly onEarly?: 'hold' | 'ignore';
  readonly shards?: number;
  readonly paymentMs?: number;
  readonly expiresAfterMs?: number;
  readonly startOn?: readonly 'order.placed.v1'[];
}

export const quickRetry: BackoffPolicy = {
  initialMs: 10,
  factor: 1,
  capMs: 10,
  jitterMs: 0,
  attemptsMax: 3,
};

export function orderSaga({ paymentMs: afterMs = paymentMs, ...options }: OrderOptions = {}) {
  return saga({
    bc: 'shop',
    name: 'fulfilment',
    version: 1,
    from: 'start',
    events: [placed, paid, withdrawn],
    startOn: ['order.placed.v1'],
    correlateBy: ({ payload }) => payload.orderId,
    initial: { orderId: '', isPaid: false },
    on: {
      'order.placed.v1': ({ payload }, { data }) => [
        { data: { ...data, orderId: payload.orderId } },
        { run: 'reserve', id: 'main', command: reserve(payload) },
        { timer: 'payment', afterMs },
      ],
      // A second payment is ignored.
      'payment.received.v1': ({ payload }, { data }) =>
        data.isPaid
          ? []
          : [
              { cancel: 'payment' },
              { data: { ...data, isPaid: true } },
              { run: 'charge', id: 'card', command: charge(payload) },
            ],
      'order.withdrawn.v1': () => [{ end: 'failed', reason: 'withdrawn' }],
    },
    steps: {
      reserve: {
        compensate: ({ data: { orderId } }) => ({ id: 'main', command: release({ orderId }) }),
      },
      charge: {
        onDone: ({ data: { orderId } }) => [
          { run: 'ship', id: orderId, command: ship({ orderId }) },
          { end: 'completed' },
        ],
        compensate: (_view, { id, command }) => ({
          id,
          command: refund(command.payload as { orderId: string }),
        }),
      },
      ship: {},
    },
    timers: { payment: () => [{ end: 'failed', reason: 'not paid in time' }] },
    expiresAfterMs: expiryMs,
    retry: quickRetry,
    ...options,
  });
}
