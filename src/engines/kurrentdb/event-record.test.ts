import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeMeta, encodeMeta } from '../../store/event-meta.ts';
import { newEvent } from '../../testing/conformance/store/fixture.ts';
import type { RowToWrite } from '../../store/store-engine.ts';
import { eventUuid, fromClientRecord, toClientEvent } from './event-record.ts';
import type { ClientRecord } from './client.ts';

const streamId = 'a.b.v1-core-1';

function rowOf(fields: Parameters<typeof newEvent>[0] = {}): RowToWrite {
  const event = newEvent(fields);
  const { eventId, type, tenant } = event;
  return {
    eventId,
    type,
    tenant,
    payload: JSON.stringify(event.payload),
    meta: encodeMeta(streamId, event),
  };
}

/** Returns the record as a server would return it. */
function stored(row: RowToWrite): ClientRecord {
  const { id, type, data, metadata } = toClientEvent(streamId, row);
  return {
    id,
    type,
    isJson: true,
    streamId,
    revision: 3n,
    created: new Date(1_000),
    position: { commit: 7n, prepare: 7n },
    data: JSON.parse(JSON.stringify(data)) as never,
    metadata: JSON.parse(JSON.stringify(metadata)) as never,
  };
}

const rows: Readonly<Record<string, RowToWrite>> = {
  'a plain envelope': rowOf(),
  'a whole envelope': rowOf({
    causationId: 'c',
    idempotencyKey: 'k',
    user: { id: 'u', name: 'Jane' },
    headers: { a: { b: null } },
  }),
  'empty headers': rowOf({ headers: {} }),
  'an id that is not a UUID': rowOf({ eventId: 'order 17' }),
  'a UUID in capitals': rowOf({ eventId: 'C0FFEE00-0000-4000-8000-000000000000' }),
  'half a surrogate pair': rowOf({ correlationId: 'a\ud800' }),
  'an envelope of no known shape': { ...rowOf(), meta: '{"$correlationId":"x","odd":[1]}' },
};

/** A multi-stream append stores metadata values as strings. */
function asTexts(record: ClientRecord): ClientRecord {
  const texts = Object.entries(record.metadata as object).map(
    ([name, value]: [string, unknown]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ],
  );
  return { ...record, metadata: Object.fromEntries(texts) as never };
}

for (const [what, row] of Object.entries(rows)) {
  for (const [how, record] of [
    ['an append', stored(row)],
    ['a multi-stream append', asTexts(stored(row))],
  ] as const) {
    test(`${what} is preserved, written by ${how}`, () => {
      const read = fromClientRecord(record);
      assert.equal(read.eventId, row.eventId);
      assert.deepEqual(decodeMeta(streamId, read.meta), decodeMeta(streamId, row.meta));
      assert.equal(read.payload, row.payload);
      assert.deepEqual([read.sequence, read.revision, read.recordedAtMs], [7, 3, 1_000]);
    });
  }
}

test('a UUID is the server’s id, and any other event id maps to a stable UUID', () => {
  const uuid = '0190f000-0000-7000-8000-000000000000';
  assert.equal(eventUuid(uuid), uuid);
  assert.match(eventUuid('order 17'), /^[0-9a-f]{8}-[0-9a-f]{4}-5/);
  assert.equal(eventUuid('order 17'), eventUuid('order 17'));
  assert.notEqual(eventUuid('order 17'), eventUuid('order 18'));
});

test('an event of another client has the tenant that it names, in its metadata or its envelope', () => {
  const tenantOf = (metadata: object, data: object = {}): string =>
    fromClientRecord({ ...stored(rowOf()), metadata, data } as never).tenant;
  assert.deepEqual(
    [tenantOf({ tenant: 'demo' }), tenantOf({ tenantId: 'demo' }), tenantOf({ tenant: 7 })],
    ['demo', 'demo', ''],
  );
  assert.equal(tenantOf({}), '');
  assert.equal(tenantOf({}, newEvent({ tenant: 'demo' })), 'demo');
});
