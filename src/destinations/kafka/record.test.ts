import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { parseBrokers } from './destination.ts';
import { isTopicName, kafkaRecord } from './record.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'kafka:payments',
  eventType: 'payment.completed.v1',
  payload: { text: 'Grüße' },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};

test('derives the topic from the integration type and the key from the ordering key or the event id', () => {
  const plain = kafkaRecord(message, { format: 'json' });
  assert.equal(plain.topic, 'payments');
  assert.equal(plain.key, 'e-1');
  const keyed = kafkaRecord({ ...message, orderingKey: 'order-7' }, { format: 'json' });
  assert.equal(keyed.key, 'order-7');
  assert.equal(kafkaRecord({ ...message, orderingKey: '' }, { format: 'json' }).key, 'e-1');
  const topicOf = (integrationType: string) =>
    kafkaRecord({ ...message, integrationType }, { format: 'json' }).topic;
  assert.equal(topicOf('kafka:eu:payments'), 'eu:payments');
  assert.equal(topicOf('payments'), 'payments');
  const chosen = kafkaRecord(message, { format: 'json', topic: ({ eventType }) => eventType });
  assert.equal(chosen.topic, 'payment.completed.v1');
});

test('header values are strings, and fields of the message override headers of the mapper', () => {
  const { headers } = kafkaRecord(
    {
      ...message,
      tenantId: 'core',
      userId: 'u-1',
      correlationId: 'c-1',
      occurredAt: '2026-01-01T00:00:00.000Z',
      headers: { n: 5, deep: { a: [1] }, none: null, gone: undefined, tenantId: 'other' },
    },
    { format: 'json' },
  );
  assert.deepEqual(headers, {
    n: '5',
    deep: '{"a":[1]}',
    eventType: 'payment.completed.v1',
    idempotencyKey: 'e-1',
    sourceStreamId: 'paymenthub.payment.v1-core-1',
    tenantId: 'core',
    userId: 'u-1',
    correlationId: 'c-1',
    occurredAt: '2026-01-01T00:00:00.000Z',
    'content-type': 'application/json',
  });
});

test('CloudEvents are written to the value, or to the headers of the Kafka binding', () => {
  const structured = kafkaRecord(message, { format: 'cloudevents-structured', source: '/bank' });
  const event = JSON.parse(structured.value) as Record<string, unknown>;
  assert.equal(event['specversion'], '1.0');
  assert.equal(event['source'], '/bank');
  assert.deepEqual(event['data'], message.payload);
  const binary = kafkaRecord(message, { format: 'cloudevents-binary' });
  assert.equal(binary.value, '{"text":"Grüße"}');
  assert.equal(binary.headers['ce_id'], 'e-1');
  assert.equal(binary.headers['content-type'], 'application/json');
});

test('the size of a record includes key, value and headers', () => {
  const small = kafkaRecord(message, { format: 'json' });
  const large = kafkaRecord(
    { ...message, payload: { text: 'ü'.repeat(1_000) } },
    { format: 'json' },
  );
  assert.equal(large.bytes - small.bytes, 2_000 - Buffer.byteLength('Grüße'));
});

test('accepts only valid Kafka topic names', () => {
  for (const name of ['payments', 'a.b_c-D9', 'x'.repeat(249)]) assert.ok(isTopicName(name), name);
  for (const name of ['', '.', '..', 'a b', 'a:b', 'ä', 'x'.repeat(250)]) {
    assert.ok(!isTopicName(name), name);
  }
});

test('accepts brokers as a list or one string, and does not quote invalid ones in the error', () => {
  assert.deepEqual(parseBrokers('a:9093, b,,[::1]:9094 '), ['a:9093', 'b:9092', '[::1]:9094']);
  assert.deepEqual(parseBrokers(['a', 'b:1']), ['a:9092', 'b:1']);
  for (const wrong of ['', ' , ', 'a:0', 'a:70000', 'kafka://u:secret@a:9092', 'a b']) {
    assert.throws(
      () => parseBrokers(wrong),
      (error: Error & { code?: string }) =>
        error.code === 'CONFIG_INVALID' && !error.message.includes('secret'),
      wrong,
    );
  }
});
