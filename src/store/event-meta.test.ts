import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { DomainEventEnvelope } from '../contracts/envelope.ts';
import { decodeMeta, encodeMeta } from './event-meta.ts';
import { codePoint } from '../testing/support/code-point.ts';

const stream = 'coreTemplateManager.messageRequest.v1-core-a-1';
const envelope: DomainEventEnvelope = {
  type: 'message-request.sent.v1',
  eventId: 'e1',
  occurredAt: '2026-11-15T10:00:00.000Z',
  correlationId: 'c1',
  tenant: 'core',
  aggregate: { bc: 'core-template-manager', type: 'message-request', id: 'a-1' },
  payload: {},
};

const metaOf = ({ type: _type, eventId: _id, payload: _payload, ...meta }: DomainEventEnvelope) =>
  meta;
const again = (name: string, given: DomainEventEnvelope) =>
  decodeMeta(name, encodeMeta(name, given));

test('values from the stream name are not stored', () => {
  assert.equal(encodeMeta(stream, envelope), '["2026-11-15T10:00:00.000Z","c1"]');
  assert.deepEqual(again(stream, envelope), metaOf(envelope));
});

test('an aggregate with a version or another name is stored', () => {
  for (const aggregate of [
    { ...envelope.aggregate, version: 3 },
    { ...envelope.aggregate, id: 'a-2' },
    { ...envelope.aggregate, bc: 'other' },
  ]) {
    assert.deepEqual(again(stream, { ...envelope, aggregate }), { ...metaOf(envelope), aggregate });
  }
});

test('envelopes survive a round trip, whatever the stream name', () => {
  const text = fc.string({ unit: codePoint, minLength: 1, maxLength: 20 });
  const token = fc.constantFrom('core', 'demo-za', 'a', 'b-c', 'message-request', 'null');
  const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
  const meta = fc.record({
    occurredAt: text,
    correlationId: text,
    causationId: optional(text),
    idempotencyKey: optional(text),
    tenant: token,
    aggregate: fc.record({ bc: token, type: token, id: token }),
    user: optional(fc.dictionary(text, fc.jsonValue())),
    headers: optional(fc.dictionary(text, fc.jsonValue())),
  });
  const name = fc.oneof(
    fc.constantFrom(
      stream,
      'a.a.v1-core-a',
      'a.bC.v1-demo-za-a',
      'plain',
      '-',
      'a-b-',
      'A.B.v1-x-y',
    ),
    fc.string(),
  );
  fc.assert(
    fc.property(name, meta, (of, given) => {
      const parsed: unknown = JSON.parse(JSON.stringify(given));
      assert.deepEqual(again(of, { ...envelope, ...given } as DomainEventEnvelope), parsed);
    }),
  );
});

test('a store with open names returns envelopes of any shape', () => {
  for (const odd of [
    { causationId: null },
    { user: null, headers: 7 },
    { aggregate: null },
    { tenant: undefined },
    { occurredAt: 5 },
  ]) {
    const given = { ...envelope, ...odd } as unknown as DomainEventEnvelope;
    const parsed: unknown = JSON.parse(JSON.stringify(metaOf(given)));
    assert.deepEqual(again(stream, given), parsed);
  }
});
