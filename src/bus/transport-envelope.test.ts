import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import {
  decodeTransportEnvelope,
  encodeTransportEnvelope,
  isJson,
  transportEnvelopeJsonSchema,
  type TransportEnvelope,
} from './transport-envelope.ts';

const envelope: TransportEnvelope = {
  version: 1,
  id: 'm-1',
  subject: 'gbe.events.audit.change',
  time: '2026-02-14T10:00:00.000Z',
  payload: { table: 'accounts' },
};

test('decoding an encoded envelope returns the same envelope', () => {
  assert.deepEqual(decodeTransportEnvelope(encodeTransportEnvelope(envelope)), envelope);
});

test('the published schema is the one that producers and consumers check', () => {
  const file = new URL('../../schemas/transport-envelope.json', import.meta.url);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), transportEnvelopeJsonSchema);
});

for (const [what, fields] of Object.entries({
  'an unknown field': { colour: 'red' },
  'a newer version': { version: 2 },
  'an impossible date': { time: '2026-02-30T10:00:00.000Z' },
  'a time with an offset': { time: '2026-02-14T10:00:00.000+01:00' },
  'a header that is not a string': { headers: { a: 1 } },
  'invalid base64': { contentType: 'image/png', payload: '###' },
  'no id': { id: undefined },
  'no payload': { payload: undefined },
})) {
  test(`an envelope with ${what} is rejected by encode and decode`, () => {
    const wrong = { ...envelope, ...fields };
    const bytes = Buffer.from(JSON.stringify(wrong));
    assert.throws(
      () => decodeTransportEnvelope(bytes),
      (error) => hasCode(error, 'ENVELOPE_INVALID'),
    );
    assert.throws(() => encodeTransportEnvelope(wrong as never));
  });
}

test('bytes that are not JSON in UTF-8 are rejected', () => {
  for (const bytes of [Buffer.from('{'), Buffer.of(0x22, 0xff, 0x22), Buffer.alloc(0)]) {
    assert.throws(
      () => decodeTransportEnvelope(bytes),
      (error) => hasCode(error, 'ENVELOPE_INVALID'),
    );
  }
});

test('JSON media types may have parameters or a +json suffix', () => {
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/a+json',
  ]) {
    assert.equal(isJson(type), true, type);
  }
  for (const type of ['text/plain', 'application/jsonx', 'application/octet-stream']) {
    assert.equal(isJson(type), false, type);
  }
});
