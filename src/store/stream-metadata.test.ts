import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { softDeleted } from './expected-revision.ts';
import {
  fromMetadataPayload,
  metadataStream,
  streamOfMetadata,
  toMetadataPayload,
  toRetention,
} from './stream-metadata.ts';

describe('stream metadata', () => {
  test('survives a round trip through its payload', () => {
    const metadata = fc.record(
      {
        truncateBefore: fc.maxSafeNat(),
        maxCount: fc.integer({ min: 1 }),
        maxAgeSeconds: fc.integer({ min: 1 }),
        custom: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.jsonValue(), {
          minKeys: 1,
          noNullPrototype: true,
        }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(metadata, (given) => {
        const payload: unknown = JSON.parse(JSON.stringify(toMetadataPayload(given)));
        const expected: unknown = JSON.parse(JSON.stringify(given));
        assert.deepEqual(JSON.parse(JSON.stringify(fromMetadataPayload(payload))), expected);
      }),
    );
  });

  test("EventStoreDB's number for a soft delete is recognised", () => {
    const payload: unknown = JSON.parse('{"$tb":9223372036854775807}');
    assert.deepEqual(fromMetadataPayload(payload), { truncateBefore: softDeleted });
  });

  test('invalid limits in a payload are ignored', () => {
    for (const bad of [-1, 1.5, '3', null, true]) {
      assert.deepEqual(fromMetadataPayload({ $tb: bad, $maxCount: bad, $maxAge: bad }), {});
    }
    assert.deepEqual(fromMetadataPayload({ $tb: 0, $maxCount: 0, $maxAge: 0 }), {
      truncateBefore: 0,
    });
    for (const payload of [undefined, null, 'text', 7]) {
      assert.deepEqual(fromMetadataPayload(payload), {});
    }
  });

  test('custom metadata is not part of the retention', () => {
    assert.deepEqual(toRetention({ maxCount: 2, custom: { a: 1 } }), { maxCount: 2 });
  });

  test('the name of a metadata stream converts back to its stream', () => {
    assert.equal(streamOfMetadata(metadataStream('account-1')), 'account-1');
    assert.equal(streamOfMetadata('account-1'), undefined);
  });
});
