import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { type MapToOutboxMark, outboxMapping } from './map-to-outbox.ts';
import type { MarkedMethod } from './method-marks.ts';

import assert from 'node:assert/strict';

type Method = MarkedMethod<MapToOutboxMark>;

const bc = 'paymenthub';
const stream = 'paymenthub.payment.v1-core-p1';

function method(
  pattern: string,
  integrationType: string | undefined,
  call: (event: RecordedEvent) => unknown = ({ type }) => ({ payload: { type } }),
): Method {
  return {
    provider: {},
    className: 'Partner',
    where: `Partner.${pattern}`,
    mark: {
      type: pattern,
      parse: undefined,
      ...(integrationType === undefined ? {} : { integrationType }),
    },
    call: (event) => call(event as RecordedEvent),
  };
}

function destinations(methods: readonly Method[], type: string): unknown {
  const mapped = outboxMapping(methods, bc).mapper.map({ type, stream } as RecordedEvent);
  return (mapped as readonly { integrationType: string }[]).map((each) => each.integrationType);
}

test('calls every method whose pattern matches the event, and no other', () => {
  const methods = [
    method('payment.completed.v1', 'exact'),
    method('payment.*', 'aggregate'),
    method('payment.completed.*', 'versions'),
  ];
  assert.deepEqual(destinations(methods, 'payment.completed.v1'), [
    'exact',
    'aggregate',
    'versions',
  ]);
  assert.deepEqual(destinations(methods, 'payment.completed.v10'), ['aggregate', 'versions']);
  assert.deepEqual(destinations(methods, 'payments.moved.v1'), []);
});

test('reads only events from the store that a pattern can match', () => {
  const one = method('payment.completed.v1', 'a');
  const filterOf = (...methods: readonly Method[]) => outboxMapping(methods, bc).filter;
  assert.deepEqual(filterOf(...[one, one].map((each, at) => other(each, at))), {
    types: ['payment.completed.v1'],
    streamPrefixes: ['paymenthub.payment.v1-'],
  });
  assert.deepEqual(filterOf(one, method('bank-account.*', 'a')), {
    typePrefixes: ['payment.completed.v1', 'bank-account.'],
    streamPrefixes: ['paymenthub.bankAccount.v', 'paymenthub.payment.v1-'],
  });
  assert.deepEqual(filterOf(one, method('*', 'a')), {
    streamPrefixes: ['paymenthub.', 'paymenthub.payment.v1-'],
  });
});

function other(each: Method, at: number): Method {
  return { ...each, mark: { ...each.mark, integrationType: `d${at}` } };
}

test('a message sets the fields that the decorator omits, and its type defaults to that of the event', () => {
  const all = method('*', 'kafka:all', () => [
    { payload: {} },
    { payload: {}, integrationType: 'webhook:x', eventType: 'payment.done.v1' },
  ]);
  const { mapper } = outboxMapping([all, method('payment.*', undefined, () => null)], bc);
  assert.deepEqual(mapper.map({ type: 'payment.completed.v1', stream } as RecordedEvent), [
    { payload: {}, integrationType: 'kafka:all', eventType: 'payment.completed.v1' },
    { payload: {}, integrationType: 'webhook:x', eventType: 'payment.done.v1' },
  ]);
});

test('rejects two messages of one event for one destination, because the second would be dropped', () => {
  assert.throws(
    () => outboxMapping([method('payment.*', 'webhook:x'), method('payment.*', 'webhook:x')], bc),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
  const hidden = [method('payment.*', 'webhook:x'), method('*', 'webhook:x')];
  assert.throws(() => destinations(hidden, 'payment.completed.v1'), /twice/);
});

test('rejects an asynchronous method and an invalid pattern', () => {
  const late = method('*', 'webhook:x', () => Promise.reject(new Error('an ignored rejection')));
  assert.throws(() => destinations([late], 'payment.completed.v1'), /asynchronous/);
  for (const pattern of ['payment', 'payment*', 'Payment.*', 'a.b.c.*', '']) {
    assert.throws(
      () => outboxMapping([method(pattern, 'webhook:x')], bc),
      (error) => hasCode(error, 'NAME_INVALID'),
      pattern,
    );
  }
});
