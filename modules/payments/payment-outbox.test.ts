import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewEvent } from 'millrace/contracts';
import type { IntegrationEventMapper } from 'millrace/outbox';
import { paymentOutbox } from './payment-outbox.ts';
import { paymentCompleted, paymentFailed, paymentQueued, paymentRequested } from './payment.ts';

const order = { account: 'a-1', amount: 5, currency: 'USD', creditor: 'shop-1' };
const listeners = ['kafka:payments', 'webhook:shop'];

function typesOf(event: NewEvent, to: readonly string[] = listeners): readonly string[] {
  const recorded = {
    ...event,
    tenant: 'core',
    aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' },
  } as Parameters<IntegrationEventMapper['map']>[0];
  const mapped = paymentOutbox({ listeners: to }).mapper.map(recorded);
  return [mapped ?? []].flat().map(({ integrationType }) => integrationType);
}

test('a queued payment becomes a job of the provider only', () => {
  assert.deepEqual(typesOf(paymentQueued(order)), ['payment-provider:process']);
  assert.deepEqual(typesOf(paymentRequested(order)), []);
});

test('the result of a payment goes to the configured listeners', () => {
  const completed = paymentCompleted({ ...order, reference: 'r-1' });
  assert.deepEqual(typesOf(completed), listeners);
  assert.deepEqual(typesOf(completed, []), []);
  assert.deepEqual(typesOf(paymentFailed({ reason: 'declined', withdrawn: false })), listeners);
});

test('a withdrawn payment is cancelled at the provider', () => {
  assert.deepEqual(typesOf(paymentFailed({ reason: 'no-answer', withdrawn: true })), [
    'payment-provider:cancel',
    ...listeners,
  ]);
});
