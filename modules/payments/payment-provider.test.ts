import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandRejected } from 'millrace/aggregates';
import type { DeliveryContext, DeliveryMessage } from 'millrace/delivery';
import type { ModuleContext } from 'millrace/platform';
import { processJobId, processQueue } from './payment-outbox.ts';
import { cancelDestination, pretendProvider, processDestination } from './payment-provider.ts';

const order = { paymentId: 'p-1', account: 'a-1', amount: 5, currency: 'USD', creditor: 'shop-1' };
const key = 'job:{core}:paymenthub:payment:process:p-1';
const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'payment-provider:process',
  eventType: 'payment.queued.v1',
  payload: order,
  headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
  sourceStreamId: 'paymenthub.payment.v1-core-p-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
  correlationId: 'c-1',
};
const context: DeliveryContext = {
  idempotencyKey: key,
  attempt: 1,
  isDuplicate: false,
  signal: new AbortController().signal,
  tenantId: 'core',
  correlationId: 'c-1',
};

function recorded(answer: () => unknown = () => undefined) {
  const sent: Parameters<ModuleContext['send']>[0][] = [];
  const send: ModuleContext['send'] = async (request) => {
    sent.push(request);
    return answer();
  };
  return { sent, send };
}

test('the queue and its jobs have the names of the naming document', () => {
  const { prefix, name } = processQueue('core');
  assert.equal(`${prefix}:${name}`, 'mq:{core}:paymenthub:payment:v1:process');
  assert.equal(processJobId('core', 'p-1'), key);
});

test('an accepted charge becomes a command of the same flow, with its idempotency key', async () => {
  const { sent, send } = recorded();
  const outcome = await processDestination(pretendProvider(), { send })(message, context);
  assert.deepEqual(outcome, { kind: 'sent', receipt: 'pretended-p-1' });
  const [request] = sent;
  assert.deepEqual(request?.command, {
    type: 'payment.process',
    payload: { reference: 'pretended-p-1' },
  });
  assert.equal(request?.idempotencyKey, 'core|payments|payment-process|p-1');
  assert.equal(request?.correlationId, 'c-1');
  assert.equal(request?.causationId, 'e-1');
  assert.deepEqual(request?.headers, { traceparent: message.headers?.['traceparent'] });
});

test('a declined charge fails the payment', async () => {
  const { sent, send } = recorded();
  await processDestination(pretendProvider({ amountMax: 4 }), { send })(message, context);
  assert.deepEqual(sent[0]?.command, {
    type: 'payment.fail',
    payload: { reason: 'limit-exceeded' },
  });
});

test('a charge for a payment that has failed in the meantime is cancelled', async () => {
  const reason = 'a payment that is failed cannot process';
  const { send } = recorded(() => {
    throw new CommandRejected('payment-failed', reason);
  });
  const provider = pretendProvider();
  const outcome = await processDestination(provider, { send })(message, context);
  assert.deepEqual(outcome, { kind: 'sent', skipped: reason });
  assert.deepEqual(provider.charges.get(key), { kind: 'declined', reason: 'cancelled' });
});

test('a charge is repeated if its result cannot be stored', async () => {
  const provider = pretendProvider();
  let isUnavailable = true;
  const { sent, send } = recorded(() => {
    if (isUnavailable) throw new Error('store unavailable');
  });
  const destination = processDestination(provider, { send });
  await assert.rejects(destination(message, context), /store unavailable/);
  isUnavailable = false;
  await destination(message, context);
  assert.equal(provider.charges.size, 1);
  assert.deepEqual(sent[0]?.command, sent[1]?.command);
});

test('a charge after its cancellation is declined', async () => {
  const provider = pretendProvider();
  await cancelDestination(provider)({ ...message, payload: { paymentId: 'p-1' } }, context);
  const { sent, send } = recorded();
  await processDestination(provider, { send })(message, context);
  assert.deepEqual(sent[0]?.command, { type: 'payment.fail', payload: { reason: 'cancelled' } });
});
