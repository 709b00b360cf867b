import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { propertyRuns } from '../testing/property-runs.ts';
import { createEnvelope, type DomainEventEnvelope } from './envelope.ts';
import { readForm, writeForm } from './event-form.ts';

const type = 'payment.completed.v1';
const id = '0190f000-0000-7000-8000-000000000000';

/** The naming document's envelope, as another service writes it as data. */
const envelope = {
  type,
  eventId: id,
  occurredAt: '2026-03-01T10:00:00Z',
  correlationId: 'flow-1',
  causationId: 'cause-1',
  idempotencyKey: 'core|shop|pay|p-1',
  tenant: 'core',
  aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1', version: 3 },
  user: { id: 'u-1', email: 'ada@example.com' },
  headers: { source: 'MakerModule' },
  payload: { amount: 12.5 },
};

test('the envelope of the naming document as data is taken apart', () => {
  const { type: _type, ...named } = envelope;
  assert.deepEqual(readForm({ type, data: envelope, metadata: undefined }), {
    format: 'envelope',
    ...named,
  });
});

test('metadata of an envelope become headers, which the headers of the envelope override', () => {
  const metadata = { $correlationId: 'other', source: 'gateway', node: 7 };
  const { headers, correlationId } = readForm({ type, data: envelope, metadata });
  assert.deepEqual([headers, correlationId], [{ source: 'MakerModule', node: 7 }, 'flow-1']);
});

test('two different tenants are a name that fits no stream', () => {
  for (const [data, metadata] of [
    [envelope, { tenantId: 'demo' }],
    [{ amount: 1 }, { tenant: 'core', tenantId: 'demo' }],
  ] as const) {
    assert.equal(readForm({ type, data, metadata }).tenant, 'core, demo');
  }
  assert.equal(readForm({ type, data: envelope, metadata: { tenantId: 'core' } }).tenant, 'core');
});

test('null stands for an absent optional member of an envelope', () => {
  const none = { causationId: null, idempotencyKey: null, user: null, headers: null };
  const form = readForm({ type, data: { ...envelope, ...none }, metadata: {} });
  assert.equal(form.format, 'envelope');
  for (const name of Object.keys(none)) assert.ok(!(name in form), name);
});

test('the metadata of the outbox document are read', () => {
  const metadata = {
    correlationId: 'flow-1',
    tenantId: 'core',
    userId: 'u-1',
    source: 'paymenthub',
    occurredAt: '2026-03-01T10:00:00.000Z',
    headers: { idempotencyKey: 'k-1', traceparent: '00-1' },
  };
  assert.deepEqual(readForm({ type, data: { amount: 1 }, metadata }), {
    format: 'metadata',
    payload: { amount: 1 },
    correlationId: 'flow-1',
    tenant: 'core',
    user: { id: 'u-1' },
    occurredAt: '2026-03-01T10:00:00.000Z',
    headers: { source: 'paymenthub', idempotencyKey: 'k-1', traceparent: '00-1' },
  });
});

test('an event without metadata, or with metadata of another kind, is its payload', () => {
  const data = { amount: 1 };
  assert.deepEqual(readForm({ type, data, metadata: undefined }), {
    format: 'metadata',
    payload: data,
  });
  const odd = { tenantId: 7, correlationId: '', occurredAt: 'yesterday', headers: 'none' };
  assert.deepEqual(readForm({ type, data, metadata: odd }), {
    format: 'metadata',
    payload: data,
    headers: odd,
  });
});

const stored = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;

const envelopes: fc.Arbitrary<DomainEventEnvelope> = fc
  .record(
    {
      causationId: fc.constantFrom('cause-1', 'a"b'),
      idempotencyKey: fc.constantFrom('core|shop|pay|p-1'),
      user: fc.record({ id: fc.string(), name: fc.string() }, { requiredKeys: [] }),
      headers: fc.dictionary(fc.constantFrom('source', 'a', '__proto__x'), fc.jsonValue()),
      payload: fc.jsonValue(),
    },
    { requiredKeys: ['payload'] },
  )
  .map(({ payload, ...more }) =>
    createEnvelope(
      { type, payload: stored(payload) },
      {
        tenant: 'core',
        aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' },
        eventId: id,
        ...stored(more),
      },
    ),
  );

/** Payloads that are envelopes of the same event. */
const lookalikes: fc.Arbitrary<unknown> = fc.oneof(
  fc.constant(envelope),
  fc.constant({ ...envelope, payload: envelope }),
  fc.jsonValue().map((payload): unknown => stored({ ...envelope, payload })),
);

test('an event of Millrace is read as it was written in each format, whatever its payload looks like', () => {
  fc.assert(
    fc.property(envelopes, fc.option(lookalikes, { nil: undefined }), (given, lookalike) => {
      const event = lookalike === undefined ? given : { ...given, payload: lookalike };
      for (const format of ['envelope', 'metadata'] as const) {
        const { data, metadata } = stored(writeForm(event, format));
        const { format: _format, ...form } = readForm({ type, data, metadata });
        const { type: _type, eventId, ...fields } = event;
        assert.deepEqual(form, format === 'envelope' ? { eventId, ...fields } : fields);
      }
    }),
    { numRuns: propertyRuns(200) },
  );
});

test('the default form is never taken apart', () => {
  fc.assert(
    fc.property(lookalikes, fc.boolean(), (payload, isText) => {
      const aggregate = { bc: 'paymenthub', type: 'payment', id: 'p-1' };
      const metadata = {
        $correlationId: 'flow-1',
        occurredAt: envelope.occurredAt,
        tenant: 'core',
        aggregate: isText ? JSON.stringify(aggregate) : aggregate,
      };
      const form = readForm({ type, data: payload, metadata });
      assert.equal(form.format, 'millrace');
      assert.deepEqual(form.payload, payload);
    }),
    { numRuns: propertyRuns(50) },
  );
});

/** One change that makes the data something else than an envelope of its event. */
type Data = Record<string, unknown>;
const changes: fc.Arbitrary<(data: Data) => Data> = fc.oneof(
  fc
    .constantFrom(
      'type',
      'eventId',
      'occurredAt',
      'correlationId',
      'tenant',
      'aggregate',
      'payload',
    )
    .map((name) => (data: Data) => {
      const { [name]: _removed, ...rest } = data;
      return rest;
    }),
  fc
    .string()
    .filter((name) => !(name in envelope))
    .map(
      (name) => (data: Data) =>
        Object.defineProperty({ ...data }, name, { value: 1, enumerable: true }),
    ),
  fc
    .constantFrom('type', 'eventId', 'occurredAt', 'correlationId', 'tenant', 'aggregate')
    .chain((name) =>
      fc
        .oneof(
          fc.constant(null),
          fc.constant(7),
          fc.constant(''),
          fc.constant([]),
          fc.constant('x.y.v1'),
        )
        .filter((value) => value !== 'x.y.v1' || ['type', 'occurredAt', 'aggregate'].includes(name))
        .map((value) => (data: Data) => ({ ...data, [name]: value })),
    ),
  fc.constantFrom('bc', 'type', 'id').map((name) => (data: Data) => ({
    ...data,
    aggregate: { ...envelope.aggregate, [name]: undefined },
  })),
  fc
    .constantFrom('causationId', 'idempotencyKey', 'user', 'headers')
    .map((name) => (data: Data) => ({ ...data, [name]: 7 })),
);

test('data that merely resembles an envelope stays the payload', () => {
  fc.assert(
    fc.property(changes, fc.jsonValue(), (change, payload) => {
      const data = stored(change({ ...envelope, payload }));
      const form = readForm({ type, data, metadata: undefined });
      assert.deepEqual(form, { format: 'metadata', payload: data });
    }),
    { numRuns: propertyRuns(300) },
  );
  const forwarded = { type: 'audit.recorded.v1', data: envelope, metadata: undefined };
  assert.deepEqual(readForm(forwarded).payload, envelope);
});
