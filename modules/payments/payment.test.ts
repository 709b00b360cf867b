import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  completePayment,
  failPayment,
  payment,
  paymentCompleted,
  paymentFailed,
  paymentProcessed,
  paymentQueued,
  paymentRequested,
  processPayment,
  queuePayment,
  requestPayment,
  withdrawPayment,
} from './payment.ts';

const order = { account: 'a-1', amount: 1_250, currency: 'EUR', creditor: 'shop-1' };
const receipt = { reference: 'r-1' };
const reason = { reason: 'no-answer' };
const requested = [paymentRequested(order)];
const queued = [...requested, paymentQueued(order)];
const processed = [...queued, paymentProcessed(receipt)];
const completed = [...processed, paymentCompleted({ ...order, ...receipt })];
const failed = [...queued, paymentFailed({ reason: 'declined', withdrawn: false })];

test('a payment is requested, queued, processed and completed', () => {
  given(payment, [])
    .when(requestPayment(order))
    .then([paymentRequested(order)]);
  given(payment, requested)
    .when(queuePayment({}))
    .then([paymentQueued(order)]);
  given(payment, queued)
    .when(processPayment(receipt))
    .then([paymentProcessed(receipt)]);
  given(payment, processed)
    .when(completePayment({}))
    .then([paymentCompleted({ ...order, ...receipt })]);
});

test('a repeated command changes nothing', () => {
  given(payment, queued).when(queuePayment({})).then([]);
  given(payment, processed).when(processPayment(receipt)).then([]);
  given(payment, completed).when(processPayment(receipt)).then([]);
  given(payment, completed).when(completePayment({})).then([]);
  given(payment, failed).when(failPayment(reason)).then([]);
  given(payment, failed).when(withdrawPayment(reason)).then([]);
});

test('no status is skipped, and a final status never changes', () => {
  given(payment, requested).when(requestPayment(order)).thenRejected('payment-exists');
  given(payment, []).when(queuePayment({})).thenRejected('payment-unknown');
  given(payment, requested).when(processPayment(receipt)).thenRejected('payment-requested');
  given(payment, queued).when(completePayment({})).thenRejected('payment-queued');
  given(payment, failed).when(processPayment(receipt)).thenRejected('payment-failed');
  given(payment, completed).when(withdrawPayment(reason)).thenRejected('payment-completed');
});

test('a payment can fail until the provider has accepted it', () => {
  const declined = { reason: 'declined' };
  given(payment, queued)
    .when(failPayment(declined))
    .then([paymentFailed({ ...declined, withdrawn: false })]);
  given(payment, processed).when(failPayment(declined)).thenRejected('payment-processed');
});

test('a payment that is not completed can be withdrawn', () => {
  const withdrawn = [paymentFailed({ ...reason, withdrawn: true })];
  given(payment, requested).when(withdrawPayment(reason)).then(withdrawn);
  given(payment, queued).when(withdrawPayment(reason)).then(withdrawn);
  given(payment, processed).when(withdrawPayment(reason)).then(withdrawn);
});
