// The saga of a payment: reserve the amount and queue the payment for the provider; after the response
// complete and settle it, or compensate.

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
  /** How long to wait for the provider, outages included, before the payment is withdrawn. */
  readonly answerWithinMs: number;
}

export function paymentProcess({ answerWithinMs }: PaymentProcessOptions): Saga {
  return saga({
    bc: 'paymenthub',
    name: 'payment-process',
    version: 1,
    // Also process payments that were requested before the saga was deployed.
    from: 'start',
    events: [paymentRequested, paymentProcessed, paymentFailed],
    startOn: ['payment.requested.v1'],
    // All events are in the stream of the payment, so none arrives early.
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
        // Start the timer before the job, so that no response precedes it.
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
        // Has no effect on a payment that the provider declined.
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
