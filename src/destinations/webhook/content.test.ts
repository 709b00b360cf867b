import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { encodeHeader, webhookContent, webhookId } from './content.ts';
import { checkedUrl, wantsEvent } from './destination.ts';

const message: DeliveryMessage = {
  id: 'o-1',
  integrationType: 'webhook:acme',
  eventType: 'payment.completed.v1',
  payload: { amount: 5 },
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
  tenantId: 'core',
  correlationId: 'c-1',
  occurredAt: '2025-09-30T10:00:00.000Z',
};

test('the standard body contains type, timestamp and data', () => {
  const { headers, body } = webhookContent(message, { format: 'standard' });
  assert.deepEqual(headers, { 'content-type': 'application/json' });
  assert.deepEqual(JSON.parse(body), {
    type: 'payment.completed.v1',
    timestamp: '2025-09-30T10:00:00.000Z',
    data: { amount: 5 },
  });
});

test('uses the time of the row if the event has none', () => {
  const { occurredAt: _, ...rest } = message;
  const row = { ...rest, createdAt: new Date(0) };
  const { body } = webhookContent(row, { format: 'standard' });
  assert.equal((JSON.parse(body) as { timestamp: string }).timestamp, '1970-01-01T00:00:00.000Z');
});

test('structured CloudEvents are entirely in the body', () => {
  const { headers, body } = webhookContent(message, { format: 'cloudevents-structured' });
  assert.match(headers['content-type'] ?? '', /^application\/cloudevents\+json/);
  assert.deepEqual(JSON.parse(body), {
    specversion: '1.0',
    id: 'e-1',
    source: '/paymenthub.payment.v1-core-1',
    type: 'payment.completed.v1',
    subject: 'paymenthub.payment.v1-core-1',
    time: '2025-09-30T10:00:00.000Z',
    tenantid: 'core',
    correlationid: 'c-1',
    datacontenttype: 'application/json',
    data: { amount: 5 },
  });
});

test('binary CloudEvents have attributes in headers and only the payload in the body', () => {
  const options = { format: 'cloudevents-binary', source: 'https://pay.example' } as const;
  const { headers, body } = webhookContent({ ...message, orderingKey: 'Kö ln' }, options);
  assert.deepEqual(headers, {
    'ce-specversion': '1.0',
    'ce-id': 'e-1',
    'ce-source': 'https://pay.example',
    'ce-type': 'payment.completed.v1',
    'ce-subject': 'paymenthub.payment.v1-core-1',
    'ce-time': '2025-09-30T10:00:00.000Z',
    'ce-tenantid': 'core',
    'ce-correlationid': 'c-1',
    'ce-partitionkey': 'K%C3%B6%20ln',
    'content-type': 'application/json',
  });
  assert.equal(body, '{"amount":5}');
});

test('any value survives encoding as a header', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const header = encodeHeader(text);
      assert.match(header, /^[!-~]*$/);
      assert.equal(decodeURIComponent(header), text.toWellFormed());
      assert.ok(!webhookId(text).includes('.'));
      assert.equal(decodeURIComponent(webhookId(text)), text.toWellFormed());
    }),
  );
});

test('matches event types by name, by prefix, or all', () => {
  const type = 'payment.completed.v1';
  assert.ok(wantsEvent(undefined, type) && wantsEvent(['*'], type) && wantsEvent([type], type));
  assert.ok(wantsEvent(['account.*', 'payment.*'], type));
  assert.ok(!wantsEvent([], type) && !wantsEvent(['payment.completed'], type));
  assert.ok(!wantsEvent(['account.*'], type));
});

test('a URL must use https and contain no password', () => {
  assert.equal(checkedUrl('https://a.example/x', { allowHttp: false }).host, 'a.example');
  assert.equal(checkedUrl('http://a.example/', { allowHttp: true }).protocol, 'http:');
  const bad = ['http://a.example', 'ftp://a.example', 'nowhere', 'https://u:secret@a.example/'];
  for (const url of bad) {
    assert.throws(
      () => checkedUrl(url, { allowHttp: false }),
      (error) => error instanceof Error && !error.message.includes('secret'),
    );
  }
});
