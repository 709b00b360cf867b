import { test } from 'node:test';
import { z } from 'zod';
import { defineEvent } from '../contracts/define-event.ts';
import { hasCode } from '../foundation/error.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { Terminal } from '../foundation/handler-outcome.ts';
import type { HandlerContext } from '../subscriptions/subscription.ts';
import type { MarkedMethod } from './method-marks.ts';
import { type OnEventMark, handlerSubscriptions } from './on-event.ts';

import assert from 'node:assert/strict';

type Method = MarkedMethod<OnEventMark>;

const mailer = {};
const names = { service: 'shop', bc: 'paymenthub' };
const stream = 'paymenthub.payment.v1-core-p1';

function method(mark: Partial<OnEventMark>, more: Partial<Method> = {}): Method {
  return {
    provider: mailer,
    className: 'PaymentMailer',
    where: `PaymentMailer.on${String(mark.type)}`,
    mark: { type: 'payment.completed.v1', parse: undefined, ...mark },
    call: () => undefined,
    ...more,
  };
}

function run(methods: readonly Method[], event: Partial<RecordedEvent>): Promise<void> {
  const [only] = handlerSubscriptions(methods, names);
  return Promise.resolve(
    only?.handler?.({ stream, ...event } as RecordedEvent, {} as HandlerContext<unknown>),
  );
}

test('methods of one class share a subscription named after it, filtered by their types', async () => {
  const called: unknown[] = [];
  const methods = ['payment.completed.v1', 'payment.refunded.v1'].map((type) =>
    method({ type }, { call: (event) => void called.push([type, event]) }),
  );
  const [only, ...more] = handlerSubscriptions(methods, names);
  assert.deepEqual(more, []);
  assert.equal(only?.name, 'sub:shop:payment-mailer:v1');
  assert.deepEqual(only.filter, {
    types: ['payment.completed.v1', 'payment.refunded.v1'],
    streamPrefixes: ['paymenthub.payment.v1-'],
  });
  const event = { type: 'payment.refunded.v1', stream };
  await run(methods, event);
  await run(methods, { ...event, stream: 'crm.payment.v1-core-p1' });
  assert.deepEqual(called, [['payment.refunded.v1', event]]);
});

test('a subscription takes its settings from any of its methods', () => {
  const settings = { name: 'sub:shop:mail:v2', onDeadLetter: 'park', lanes: 2 } as const;
  const [only] = handlerSubscriptions(
    [
      method({ subscription: 'sub:shop:mail:v2' }),
      method({ type: 'payment.refunded.v1', subscription: settings }),
      method({ type: 'payment.failed.v1', subscription: { ...settings } }),
    ],
    { bc: 'paymenthub' },
  );
  assert.equal(only?.onDeadLetter, 'park');
  assert.equal(only.lanes, 2);
});

const invalidMethods: Readonly<
  Record<string, readonly [readonly Method[], string | undefined, RegExp]>
> = {
  'no name and no service to derive it from': [[method({})], undefined, /has no subscription name/],
  'the same type twice in one subscription': [[method({}), method({})], 'shop', /both handle/],
  'the same name in two classes': [
    [method({}), method({ type: 'payment.failed.v1' }, { provider: {} })],
    'shop',
    /both have the subscription 'sub:shop:payment-mailer:v1'/,
  ],
  'different settings for one name': [
    [
      method({ subscription: { name: 'sub:shop:mail:v1', lanes: 1 } }),
      method({ type: 'payment.failed.v1', subscription: { name: 'sub:shop:mail:v1', lanes: 2 } }),
    ],
    'shop',
    /other settings/,
  ],
};
for (const [what, [methods, service, reason]] of Object.entries(invalidMethods)) {
  test(`rejects ${what}, naming the method`, () => {
    assert.throws(
      () => handlerSubscriptions(methods, { ...names, service }),
      (error) => hasCode(error, 'SUBSCRIPTION_INVALID') && reason.test(error.message),
    );
  });
}

test('rejects an invalid event type and an invalid service name', () => {
  for (const [mark, service] of [
    [{ type: 'PaymentCompleted' }, 'shop'],
    [{}, 'Shop'],
  ] as const) {
    assert.throws(
      () => handlerSubscriptions([method(mark)], { ...names, service }),
      (error) => hasCode(error, 'NAME_INVALID'),
    );
  }
});

test('a definition validates the payload, and an invalid one is dead-lettered at once', async () => {
  const completed = defineEvent('payment.completed.v1', z.object({ amount: z.coerce.number() }));
  const payloads: unknown[] = [];
  const call = (event: unknown): void => void payloads.push((event as RecordedEvent).payload);
  const { type } = completed;
  const methods = [method({ parse: (payload) => completed.parse(payload) }, { call })];
  await run(methods, { type, payload: { amount: '12' } });
  assert.deepEqual(payloads, [{ amount: 12 }]);
  await assert.rejects(run(methods, { type, payload: {} }), Terminal);
});
