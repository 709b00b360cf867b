import { test } from 'node:test';
import { givenSaga } from 'millrace/testing';
import { releaseAmount, reserveAmount, settleAmount } from './account.ts';
import { paymentProcess } from './payment-process.ts';
import {
  completePayment,
  failPayment,
  paymentFailed,
  paymentProcessed,
  paymentRequested,
  queuePayment,
  withdrawPayment,
} from './payment.ts';

const answerWithinMs = 60_000;
const saga = paymentProcess({ answerWithinMs });
const requested = paymentRequested({
  account: 'a-1',
  amount: 1_250,
  currency: 'EUR',
  creditor: 'shop-1',
});
// `givenSaga` names the aggregate of every event `given`.
const paymentId = 'given';
const release = { id: 'a-1', command: releaseAmount({ paymentId }) };
const withdraw = (reason: string) => ({ id: paymentId, command: withdrawPayment({ reason }) });

test('a payment reserves its amount, is queued, and waits for the provider', () => {
  givenSaga(saga, [])
    .when(requested)
    .thenSends([
      { id: 'a-1', command: reserveAmount({ paymentId, amount: 1_250, currency: 'EUR' }) },
      { id: paymentId, command: queuePayment({}) },
    ])
    .thenTimers({ answer: answerWithinMs })
    .thenStatus('running');
});

test('an accepted payment is completed and settled', () => {
  givenSaga(saga, [requested])
    .when(paymentProcessed({ reference: 'r-1' }))
    .thenSends([
      { id: paymentId, command: completePayment({}) },
      { id: 'a-1', command: settleAmount({ paymentId }) },
    ])
    .thenTimers({})
    .thenStatus('completed');
});

test('a declined payment releases the amount', () => {
  givenSaga(saga, [requested])
    .when(paymentFailed({ reason: 'declined', withdrawn: false }))
    .thenSends([withdraw('taken-back'), release])
    .thenStatus('compensated');
});

test('a payment without a response in time is withdrawn', () => {
  givenSaga(saga, [requested])
    .when({ passMs: answerWithinMs - 1 })
    .thenSends([])
    .when({ passMs: 1 })
    .thenSends([withdraw('no-answer'), release])
    .thenStatus('compensated')
    .when(paymentProcessed({ reference: 'late' }))
    .thenSends([])
    .thenStatus('compensated');
});

test('a payment without sufficient funds fails and is not queued', () => {
  givenSaga(saga, [])
    .when(requested, { rejected: { 'account.reserve': 'insufficient-funds' } })
    .thenSends([
      { id: 'a-1', command: reserveAmount({ paymentId, amount: 1_250, currency: 'EUR' }) },
      { id: paymentId, command: failPayment({ reason: 'insufficient-funds' }) },
    ])
    .thenStatus('compensated');
});

test('a payment that was withdrawn before its completion is compensated', () => {
  givenSaga(saga, [requested])
    .when(paymentProcessed({ reference: 'r-1' }), {
      rejected: { 'payment.complete': 'payment-failed' },
    })
    .thenSends([{ id: paymentId, command: completePayment({}) }, withdraw('taken-back'), release])
    .thenStatus('compensated');
});
