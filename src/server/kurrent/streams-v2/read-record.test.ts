import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProposed } from '../events/from-wire.ts';
import { RpcError } from '../rpc-error.ts';
import { expectedState, readRecord } from './read-record.ts';

const id = '77f06aaa-3a3b-4148-8c99-02c33147c54d';
const record = { recordId: id, properties: {}, data: Buffer.from('{}'), stream: 'a-1' };

test('properties of every type become members of the metadata', () => {
  const { metadata, type, isJson } = readRecord({
    ...record,
    schema: { format: 1, name: 'a' },
    properties: {
      text: { stringValue: 'x' },
      number: { numberValue: 1.5 },
      yes: { boolValue: true },
      nothing: {},
      endless: { numberValue: Number.POSITIVE_INFINITY },
      list: { listValue: { values: [{ numberValue: 1 }, { boolValue: false }] } },
      tree: { structValue: { fields: { leaf: { stringValue: 'y' } } } },
    },
  });
  assert.deepEqual(JSON.parse(Buffer.from(metadata).toString()), {
    text: 'x',
    number: 1.5,
    yes: true,
    nothing: null,
    endless: 'Infinity',
    list: [1, false],
    tree: { leaf: 'y' },
  });
  assert.deepEqual([type, isJson], ['a', true]);
});

test('an event does not keep the message that it came in in memory', () => {
  const message = Buffer.alloc(1_000_000, 'x');
  const [data, customMetadata] = [message.subarray(0, 3), message.subarray(9, 12)];
  const read = readRecord({
    stream: 's',
    properties: {},
    schema: { name: 'a', format: 1 },
    data,
  });
  const given = { id: { string: crypto.randomUUID() }, metadata: { type: 'a' }, customMetadata };
  const proposed = readProposed({ ...given, data });
  for (const bytes of [read.data, proposed.data, proposed.metadata]) {
    assert.equal(String(bytes), 'xxx');
    assert.ok(bytes.buffer.byteLength < 100_000);
  }
  // The usual message has one event, which is not copied.
  assert.equal(readProposed({ ...given, data: message }).data, message);
});

test('a record needs a type, and gets an id if it has none', () => {
  assert.throws(() => readRecord(record), RpcError);
  const schema = { format: 4, name: 'a' };
  const { eventId, isJson } = readRecord({ ...record, recordId: undefined, schema });
  assert.match(eventId, /^[0-9a-f-]{36}$/);
  assert.equal(isJson, false);
  assert.throws(() => readRecord({ ...record, recordId: 'x', schema }), RpcError);
});

test('converts expected states', () => {
  const long = (value: number) => ({ low: value | 0, high: value < 0 ? -1 : 0, unsigned: false });
  assert.deepEqual([undefined, long(-1), long(-2), long(-4), long(7)].map(expectedState), [
    'any',
    'none',
    'any',
    'exists',
    7,
  ]);
  assert.throws(() => expectedState(long(-3)), RpcError);
});
