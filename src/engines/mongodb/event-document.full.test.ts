import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BSON } from 'mongodb';
import { decodeMeta, encodeMeta } from '../../store/event-meta.ts';
import { decodeReadable } from '../../store/recorded-event.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import { withStream } from './aggregate-id.ts';
import { bytesAtMost, toDocument, toRow, underOtherId } from './event-document.ts';
import type { EventDocument } from './collections.ts';
import { propertyRuns } from '../../testing/property-runs.ts';
import { codePoint } from '../../testing/support/code-point.ts';

const location = {
  stream: 'chat.room.v1-core-r1',
  revision: 141,
  position: 9_000,
  recordedAt: new Date('2025-09-30T10:00:01.000Z'),
};

function rowOf(fields: Partial<Parameters<typeof encodeMeta>[1]> = {}): RowToWrite {
  const envelope = {
    type: 'chat.message-posted.v1',
    eventId: 'event-uuid',
    occurredAt: '2025-09-30T10:00:00.000Z',
    correlationId: 'req-uuid',
    tenant: 'core',
    aggregate: { bc: 'chat', type: 'room', id: 'r1' },
    payload: { content: 'Закончил работу\n#status Done' },
    ...fields,
  };
  const { type, eventId, tenant, payload } = envelope;
  return {
    type,
    eventId,
    tenant,
    payload: JSON.stringify(payload),
    meta: encodeMeta(location.stream, envelope),
  };
}

/** Encodes the document to BSON and back, like the server does. */
function stored(document: EventDocument): EventDocument {
  return BSON.deserialize(BSON.serialize(document)) as EventDocument;
}

test('an event has the shape of the architecture document', () => {
  const row = rowOf({ causationId: 'parent-event-id', user: { id: 'user-uuid' } });
  const { stream, position, tenant, category, recordedAt, ...document } = toDocument(row, location);
  assert.deepEqual(document, {
    _id: 'event-uuid',
    aggregateId: 'r1',
    aggregateType: 'room',
    eventType: 'chat.message-posted.v1',
    eventData: { content: 'Закончил работу\n#status Done' },
    version: 142,
    timestamp: new Date('2025-09-30T10:00:00.000Z'),
    metadata: {
      correlationId: 'req-uuid',
      causationId: 'parent-event-id',
      userId: 'user-uuid',
      aggregate: { bc: 'chat', type: 'room', id: 'r1' },
    },
  });
  assert.deepEqual(
    { stream, position, tenant, category, recordedAt },
    {
      stream: location.stream,
      position: 9_000,
      tenant: 'core',
      category: 'chat.room.v1',
      recordedAt: location.recordedAt,
    },
  );
});

test('the aggregate id is that of the envelope, else the end of the stream name, else the whole name', () => {
  const idOf = (stream: string, aggregate?: unknown): string =>
    toDocument({ ...rowOf(), meta: JSON.stringify({ aggregate }) }, { ...location, stream })
      .aggregateId;
  assert.equal(idOf('chat.room.v1-acme-uk-r1', { id: 'r1' }), 'r1');
  assert.equal(idOf('chat.room.v1-core-r-1'), 'r-1');
  for (const aggregate of [null, 7, { id: 7 }, { id: '' }]) {
    assert.equal(idOf('chat.room.v1-core-r1', aggregate), 'r1');
  }
  assert.equal(idOf('$$settings'), '$$settings');
});

test('an event of an earlier version, whose aggregate id is its stream name, gets both', () => {
  const { stream, ...document } = toDocument(rowOf(), location);
  assert.deepEqual(withStream({ ...document, aggregateId: stream }), { ...document, stream });
  assert.deepEqual(withStream({ ...document, stream }), { ...document, stream });
});

test('every payload and every envelope is preserved', () => {
  const json = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' });
  const odd = fc.constantFrom(
    { $set: 1 },
    { 'a.b': 1 },
    { _bsontype: 'ObjectId', id: 'x' },
    { _id: 1, a: 2 },
    { '': 1 },
    { 'a\u0000b': 1 },
    [[1], [2]],
    { lone: '\ud800' },
    { toBSON: 1, $ref: 'x', $id: 'y' },
    JSON.parse('{"__proto__":{"a":1}}') as unknown,
  );
  const headers = fc.dictionary(fc.string({ unit: codePoint, maxLength: 10 }), fc.oneof(json, odd));
  const occurredAt = fc.constantFrom(
    '2025-09-30T10:00:00.000Z',
    '2024-02-29T23:59:59.123456789+05:30',
    '0001-01-01T00:00:00Z',
  );
  fc.assert(
    fc.property(
      fc.oneof(json, odd),
      headers,
      fc.record({ id: fc.string(), roles: json }, { requiredKeys: ['id'] }),
      occurredAt,
      (payload, headersOf, user, at) => {
        const row = rowOf({ payload, headers: headersOf, user, occurredAt: at });
        const back = toRow(stored(toDocument(row, location)));
        assert.equal(back.payload, row.payload);
        assert.deepEqual(
          decodeMeta(location.stream, back.meta),
          decodeMeta(location.stream, row.meta),
        );
        assert.deepEqual(
          { ...back, payload: '', meta: '' },
          {
            sequence: 9_000,
            stream: location.stream,
            revision: 141,
            eventId: 'event-uuid',
            type: 'chat.message-posted.v1',
            recordedAtMs: location.recordedAt.getTime(),
            payload: '',
            meta: '',
          },
        );
      },
    ),
    { numRuns: propertyRuns(500) },
  );
});

test('a document that another program changed is unreadable, and does not stop its reader', async () => {
  const document = stored(toDocument(rowOf(), location));
  const changes: readonly Partial<Record<keyof EventDocument, unknown>>[] = [
    { metadata: undefined },
    { metadata: null },
    { eventData: undefined },
    { eventData: 7n },
    { timestamp: undefined },
    { timestamp: new Date(Number.NaN) },
    { recordedAt: 'today', metadata: null },
    { encoding: 'json', eventData: '{' },
  ];
  const documents = [...changes.map((change) => ({ ...document, ...change })), document];
  const keys = { get: async () => new Map(), forget: async () => false };
  const read = await decodeReadable(
    documents.map((each) => toRow(each as EventDocument)),
    keys,
  );
  assert.deepEqual(
    read.map(({ unreadable }) => unreadable),
    [
      ...changes.map(
        () => "event event-uuid (revision 141 of 'chat.room.v1-core-r1') is not valid JSON",
      ),
      undefined,
    ],
  );
});

test('an envelope of an open store is preserved, whatever its shape', () => {
  for (const meta of [{}, { occurredAt: 'yesterday' }, { aggregate: null, user: 7, more: [1] }]) {
    const row = { ...rowOf(), meta: JSON.stringify(meta) };
    assert.deepEqual(JSON.parse(toRow(stored(toDocument(row, location))).meta), meta);
  }
});

test('stores values that BSON cannot represent as JSON strings, other values as BSON', () => {
  assert.equal(toDocument(rowOf(), location).encoding, undefined);
  for (const payload of [{ $sealed: 'x' }, { 'a.b': 1 }, [[1]], 'x'.repeat(200_000)]) {
    const document = toDocument(rowOf({ payload }), location);
    assert.equal(document.encoding, 'json');
    assert.equal(document.eventData, JSON.stringify(payload));
  }
});

test('an event with another _id keeps its event id', () => {
  const document = underOtherId(toDocument(rowOf(), location), 0);
  assert.equal(document._id, 'event-uuid@chat.room.v1-core-r1@142');
  assert.equal(toRow(stored(document)).eventId, 'event-uuid');
  assert.notEqual(underOtherId(document, 1)._id, document._id);
  assert.equal(underOtherId(document, 1).eventId, 'event-uuid');
});

test('the size of a document never exceeds its upper bound', () => {
  const worst = [
    Array.from({ length: 60_000 }, () => 1),
    Array.from({ length: 30_000 }, () => ''),
    Array.from({ length: 20_000 }, () => null),
    Array.from({ length: 20_000 }, () => 1.5),
    '€'.repeat(40_000),
    { deep: Array.from({ length: 15_000 }, () => ({ a: 1 })) },
    'x'.repeat(1_000_000),
  ];
  for (const payload of worst) {
    const row = rowOf({ payload, headers: { payload } });
    const bytes = BSON.calculateObjectSize(toDocument(row, location));
    assert.ok(bytes <= bytesAtMost(row), `${bytes} > ${bytesAtMost(row)}`);
  }
});
