import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { isForgotten, newSubjectKey, seal, subjectOf, unseal } from './erasure.ts';

const key = newSubjectKey();
const event = { eventId: 'e-1', subject: 'person-1' };

describe('sealing', () => {
  test('any JSON is decrypted with the key and event id that it was encrypted for', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ minLength: 1 }), (payload, eventId) => {
        const json = JSON.stringify(payload);
        const sealed: unknown = JSON.parse(seal(json, key, eventId));
        const opened = unseal(sealed, { ...event, eventId }, { kind: 'key', key });
        assert.equal(JSON.stringify(opened), json);
      }),
    );
  });

  test('a payload that was moved, modified or encrypted with another key is detected', () => {
    const sealed = seal('{"name":"Jane"}', key, 'e-1');
    const attempts = [
      () => unseal(JSON.parse(sealed), { ...event, eventId: 'e-2' }, { kind: 'key', key }),
      () => unseal(JSON.parse(sealed), event, { kind: 'key', key: newSubjectKey() }),
      () => unseal({ $sealed: flipped(sealed) }, event, { kind: 'key', key }),
      ...['', 'AAAA', 'A'.repeat(24)].map(
        ($sealed) => () => unseal({ $sealed }, event, { kind: 'key', key }),
      ),
    ];
    for (const attempt of attempts) {
      assert.throws(attempt, (error) => hasCode(error, 'STORE_CORRUPT'));
    }
  });

  test('a payload without its key is forgotten, also if the time is unknown', () => {
    const sealed: unknown = JSON.parse(seal('1', key, 'e-1'));
    const forgotten = unseal(sealed, event, { kind: 'forgotten', forgottenAtMs: 1_000 });
    assert.deepEqual(forgotten, {
      $forgotten: { subject: 'person-1', forgottenAt: '1970-01-01T00:00:01.000Z' },
    });
    assert.ok(isForgotten(forgotten));
    assert.ok(isForgotten(unseal(sealed, event, undefined)));
  });

  test('a payload that was never encrypted is returned unchanged', () => {
    for (const payload of [null, 1, 'x', [], { $sealed: 1 }, { name: 'Jane' }]) {
      assert.deepEqual(unseal(payload, event, { kind: 'forgotten', forgottenAtMs: 0 }), payload);
      assert.equal(isForgotten(payload), false);
    }
  });

  test('a data subject must be a non-empty string', () => {
    assert.equal(subjectOf({ headers: { dataSubject: 'person-1' } }), 'person-1');
    for (const headers of [{}, { dataSubject: '' }, { dataSubject: 7 }]) {
      assert.equal(subjectOf({ headers }), undefined);
    }
  });
});

/** Flips one bit of the encrypted payload. */
function flipped(sealed: string): string {
  const { $sealed } = JSON.parse(sealed) as { readonly $sealed: string };
  const bytes = Buffer.from($sealed, 'base64');
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  return bytes.toString('base64');
}
