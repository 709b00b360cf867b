import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { type MapToOutboxMark, outboxMapping } from './map-to-outbox.ts';
import type { MarkedMethod } from './method-marks.ts';

import assert from 'node:assert/strict';

type Method = MarkedMethod<MapToOutboxMark>;

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
      pattern,
      parse: undefined,
      ...(integrationType === undefined ? {} : { integrationType }),
    },
    call: (event) => call(event as RecordedEvent),
  };
}

function destinations(methods: readonly Method[], type: string): unknown {
  const mapped = outboxMapping(methods).mapper.map({ type } as RecordedEvent);
  return (mapped as readonly { integrationType: string }[]).map((each) => each.integrationType);
}

test('an event goes to every method whose pattern it fits, and to no other', () => {
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

test('only what some pattern can fit is read from the store', () => {
  const one = method('payment.completed.v1', 'a');
  assert.deepEqual(outboxMapping([one, one].map((each, at) => other(each, at))).filter, {
    types: ['payment.completed.v1'],
  });
  assert.deepEqual(outboxMapping([one, method('account.*', 'a')]).filter, {
    typePrefixes: ['payment.completed.v1', 'account.'],
  });
  assert.deepEqual(outboxMapping([one, method('*', 'a')]).filter, {});
});

function other(each: Method, at: number): Method {
  return { ...each, mark: { ...each.mark, integrationType: `d${at}` } };
}

test('a message says what the decorator leaves open, and the type of the event is its default', () => {
  const { mapper } = outboxMapping([
    method('*', 'kafka:all', () => [
      { payload: {} },
      { payload: {}, integrationType: 'webhook:x', eventType: 'payment.done.v1' },
    ]),
    method('payment.*', undefined, () => null),
  ]);
  assert.deepEqual(mapper.map({ type: 'payment.completed.v1' } as RecordedEvent), [
    { payload: {}, integrationType: 'kafka:all', eventType: 'payment.completed.v1' },
    { payload: {}, integrationType: 'webhook:x', eventType: 'payment.done.v1' },
  ]);
});

test('two messages of one event for one destination are an error: the second would be dropped', () => {
  assert.throws(
    () => outboxMapping([method('payment.*', 'webhook:x'), method('payment.*', 'webhook:x')]),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
  const hidden = [method('payment.*', 'webhook:x'), method('*', 'webhook:x')];
  assert.throws(() => destinations(hidden, 'payment.completed.v1'), /twice/);
});

test('a method that is asynchronous, and a pattern that is none, are told', () => {
  const late = method('*', 'webhook:x', () => Promise.reject(new Error('nobody hears this')));
  assert.throws(() => destinations([late], 'payment.completed.v1'), /asynchronous/);
  for (const pattern of ['payment', 'payment*', 'Payment.*', 'a.b.c.*', '']) {
    assert.throws(
      () => outboxMapping([method(pattern, 'webhook:x')]),
      (error) => hasCode(error, 'NAME_INVALID'),
      pattern,
    );
  }
});
