// The saga of a payment: reserve the amount, queue it for the provider, and with its answer complete and
// settle, or take back what was done.

import { saga, type Saga } from 'millrace/reactors';
import { releaseAmount, reserveAmount, settleAmount } from './account.ts';
import {
  completePayment,
  failPayment,
  paymentFailed,
  paymentProcessed,
  paymentRequested,
  queuePayment,
  withdrawPayment,
} from './payment.ts';

export interface PaymentProcessOptions {
  /** How long the provider has, its outages included, before the payment is taken back. */
  readonly answerWithinMs: number;
}

export function paymentProcess({ answerWithinMs }: PaymentProcessOptions): Saga {
  return saga({
    bc: 'paymenthub',
    name: 'payment-process',
    version: 1,
    // Whoever was asked to pay before this ran is to be paid, too.
    from: 'start',
    events: [paymentRequested, paymentProcessed, paymentFailed],
    startOn: ['payment.requested.v1'],
    // All of them come in the payment's own stream, in its order.
    onEarly: 'ignore',
    correlateBy: ({ aggregate }) => aggregate.id,
    initial: { account: '', reason: '' },
    on: {
      'payment.requested.v1': ({ payload: { account, amount, currency } }, { key }) => [
        { data: { account, reason: '' } },
        {
          run: 'reserve',
          id: account,
          command: reserveAmount({ paymentId: key, amount, currency }),
        },
      ],
      'payment.processed.v1': (_event, { key }) => [
        { cancel: 'answer' },
        { run: 'complete', id: key, command: completePayment({}) },
      ],
      'payment.failed.v1': ({ payload: { reason } }) => [{ end: 'failed', reason }],
    },
    steps: {
      reserve: {
        // The timer stands before the job does: no answer can come before it.
        onDone: ({ key }) => [
          { timer: 'answer', afterMs: answerWithinMs },
          { run: 'queue', id: key, command: queuePayment({}) },
        ],
        onDenied: ({ key }, { reason }) => [
          { run: 'reject', id: key, command: failPayment({ reason }) },
          { end: 'failed', reason },
        ],
        compensate: ({ key, data }) => ({
          id: data.account,
          command: releaseAmount({ paymentId: key }),
        }),
      },
      queue: {
        // A payment that the provider declined has failed already: then this changes nothing.
        compensate: ({ key, data }) => ({
          id: key,
          command: withdrawPayment({ reason: data.reason === '' ? 'taken-back' : data.reason }),
        }),
      },
      complete: {
        onDone: ({ key, data }) => [
          { run: 'settle', id: data.account, command: settleAmount({ paymentId: key }) },
          { end: 'completed' },
        ],
      },
      settle: {},
      reject: {},
    },
    timers: {
      answer: ({ data }) => [
        { data: { ...data, reason: 'no-answer' } },
        { end: 'failed', reason: 'no-answer' },
      ],
    },
  });
}
