import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createEnvelope, envelopeJsonSchema, isEnvelope, validateEnvelope } from './envelope.ts';
import { encodePayload } from './json-payload.ts';
import type { Problem } from './schema.ts';
import { propertyRuns } from '../testing/property-runs.ts';
import { codePoint } from '../testing/support/code-point.ts';

const valid = {
  type: 'payment.completed.v1',
  eventId: '017f8c4a-2b1c-7000-8000-000000000001',
  occurredAt: '2025-09-30T10:00:00.123Z',
  correlationId: 'req-1',
  causationId: 'cmd-1',
  idempotencyKey: 'core|payments|complete|p-1',
  tenant: 'core',
  aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1', version: 3 },
  user: { id: 'u-1', email: 'jane@example.com', roles: ['maker'] },
  headers: { source: 'MakerModule' },
  payload: { amount: 12.5 },
};

describe('envelope', () => {
  test('accepts an envelope with all fields and one with only the required fields', () => {
    assert.equal(validateEnvelope(valid), valid);
    const { causationId: _1, idempotencyKey: _2, user: _3, headers: _4, ...minimal } = valid;
    for (const payload of [null, 0, '', false, [], {}])
      assert.ok(isEnvelope({ ...minimal, payload }));
  });

  test('the error lists all problems, each with its path', () => {
    const problems = problemsOf({
      ...valid,
      type: 'PaymentCompleted',
      occurredAt: '30.09.2025',
      correlationId: 'a\nb',
      tenant: 7,
      aggregate: { bc: 'PaymentHub', id: 'p 1' },
      'a/b': 1,
      payload: undefined,
    });
    assert.deepEqual(problems.map(({ path }) => path).toSorted(), [
      '/aggregate/bc',
      '/aggregate/id',
      '/aggregate/type',
      '/a~1b',
      '/correlationId',
      '/occurredAt',
      '/payload',
      '/tenant',
      '/type',
    ]);
    const byPath = Object.fromEntries(problems.map(({ path, message }) => [path, message]));
    assert.equal(byPath['/aggregate/type'], 'is missing');
    assert.equal(byPath['/a~1b'], 'is not a known field');
    assert.match(byPath['/type'] ?? '', /payment\.completed\.v1/);
  });

  test('rejects values that are not objects', () => {
    for (const bad of [undefined, null, 7, 'x', [], () => 1])
      assert.deepEqual(
        problemsOf(bad).map(({ path }) => path),
        [''],
      );
  });

  test('accepts only dates that exist', () => {
    const at = (occurredAt: string): boolean => isEnvelope({ ...valid, occurredAt });
    for (const good of [
      '2024-02-29T00:00:00Z',
      '2000-02-29T23:59:59.999999999+14:00',
      '2025-12-31T00:00:00-00:30',
    ])
      assert.ok(at(good), good);
    for (const bad of [
      '2025-02-29T00:00:00Z',
      '1900-02-29T00:00:00Z',
      '2025-04-31T00:00:00Z',
      '2025-01-01',
      '2025-01-01T00:00:00',
      '2025-01-01T24:00:00Z',
      '2025-13-01T00:00:00Z',
      '2025-01-01t00:00:00z',
    ])
      assert.ok(!at(bad), bad);
  });

  test('the published JSON Schema equals the definition', () => {
    const file = readFileSync(
      new URL('../../schemas/domain-event-envelope.json', import.meta.url),
      'utf8',
    );
    assert.equal(file, `${JSON.stringify(envelopeJsonSchema, null, 2)}\n`, 'run: npm run generate');
  });

  test('the published JSON Schema accepts and rejects the same documents as the validator', () => {
    const ajv = new Ajv2020({ strict: true, strictTypes: false });
    addFormats.default(ajv);
    const check = ajv.compile(envelopeJsonSchema);
    const mutation = fc.record({
      path: fc.constantFrom(...paths(valid)),
      value: fc.oneof(
        fc.constantFrom(
          undefined,
          null,
          '',
          0,
          'core',
          'a.b.v1',
          'a.b.v0',
          '2025-02-30T00:00:00Z',
          '2025-02-28T00:00:00Z',
          'x'.repeat(300),
          'a\u0000',
          'demo--za',
          'é',
        ),
        fc.jsonValue({ maxDepth: 1 }),
        fc.string({ unit: codePoint, maxLength: 5 }),
        fc
          .date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') })
          .map((date) => date.toISOString()),
      ),
    });
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(mutation, { maxLength: 2 }), (mutations) => {
        const document = JSON.parse(JSON.stringify(valid)) as Record<string, unknown>;
        for (const { path, value } of mutations) mutate(document, path, value);
        const sent = JSON.parse(JSON.stringify(document)) as unknown;
        const ours = isEnvelope(sent);
        if (ours) accepted += 1;
        assert.equal(ours, check(sent), JSON.stringify(sent));
      }),
      { numRuns: propertyRuns(5_000) },
    );
    assert.ok(
      accepted > 500 && accepted < 4_500,
      `${accepted} of 5000 accepted: the test must see both`,
    );
  });

  test('a new envelope starts a flow or continues the given one', () => {
    const clock = fakeClock({ nowMs: Date.UTC(2025, 8, 30) });
    const context = { tenant: 'core', aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' } };
    const first = createEnvelope({ type: 'payment.requested.v1', payload: {} }, context, { clock });
    assert.equal(first.correlationId, first.eventId);
    assert.equal(first.occurredAt, '2025-09-30T00:00:00.000Z');
    const second = createEnvelope(
      { type: 'payment.queued.v1', payload: {} },
      { ...context, correlationId: first.correlationId, causationId: first.eventId },
    );
    assert.deepEqual([second.correlationId, second.causationId], [first.eventId, first.eventId]);
    assert.notEqual(second.eventId, first.eventId);
    assert.throws(
      () =>
        createEnvelope({ type: 'payment.queued.v1', payload: 'x'.repeat(100) }, context, {
          payloadBytesMax: 100,
        }),
      (error) => hasCode(error, 'PAYLOAD_TOO_LARGE'),
    );
  });
});

describe('payloads', () => {
  test('values that JSON can represent round-trip unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const { json, bytes } = encodePayload(value);
        assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(value)));
        assert.equal(bytes, Buffer.byteLength(json));
      }),
    );
    assert.equal(
      encodePayload({ at: new Date(0), left: undefined }).json,
      '{"at":"1970-01-01T00:00:00.000Z"}',
    );
  });

  test('values that JSON would change or drop are rejected, with their path', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = [cycle];
    for (const [value, path] of [
      [{ a: [1, { b: Number.NaN }] }, '/a/1/b'],
      [{ a: Number.POSITIVE_INFINITY }, '/a'],
      [{ a: 1n }, '/a'],
      [[undefined], '/0'],
      [{ a: () => 1 }, '/a'],
      [{ a: Symbol('x') }, '/a'],
      [{ a: new Map() }, '/a'],
      [{ a: new Date(Number.NaN) }, '/a'],
      [undefined, ''],
      [cycle, undefined],
    ] as const) {
      assert.throws(
        () => encodePayload(value),
        (error) =>
          hasCode(error, 'PAYLOAD_NOT_JSON') &&
          (path === undefined || error.details['path'] === path),
      );
    }
  });

  test('the size limit counts bytes, not characters', () => {
    assert.equal(encodePayload('é'.repeat(49), { payloadBytesMax: 100 }).bytes, 100);
    assert.throws(
      () => encodePayload('é'.repeat(50), { payloadBytesMax: 100 }),
      (error) => hasCode(error, 'PAYLOAD_TOO_LARGE'),
    );
    assert.throws(
      () => encodePayload('x'.repeat(1_048_575)),
      (error) => hasCode(error, 'PAYLOAD_TOO_LARGE'),
    );
  });
});

function problemsOf(value: unknown): readonly Problem[] {
  try {
    validateEnvelope(value);
  } catch (error) {
    if (hasCode(error, 'ENVELOPE_INVALID')) return error.details['problems'] as readonly Problem[];
    throw error;
  }
  throw new Error('accepted');
}

function paths(value: object, prefix = ''): string[] {
  const found: string[] = [];
  for (const [key, member] of Object.entries(value) as [string, unknown][]) {
    found.push(prefix + key);
    const isObject = typeof member === 'object' && member !== null && !Array.isArray(member);
    if (isObject) found.push(...paths(member, `${prefix}${key}.`));
  }
  return found;
}

function mutate(document: Record<string, unknown>, path: string, value: unknown): void {
  const steps = path.split('.');
  let node: unknown = document;
  for (const step of steps.slice(0, -1)) {
    if (typeof node !== 'object' || node === null) return;
    node = (node as Record<string, unknown>)[step];
  }
  if (typeof node === 'object' && node !== null)
    (node as Record<string, unknown>)[steps.at(-1) ?? ''] = value;
}
