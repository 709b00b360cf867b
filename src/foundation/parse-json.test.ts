import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../testing/property-runs.ts';
import { jsonDepthMax, parseJson } from './parse-json.ts';

const nested = (depth: number): string => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;

test('JSON is parsed up to a depth, and brackets in strings do not count', () => {
  assert.doesNotThrow(() => parseJson(nested(jsonDepthMax)));
  assert.throws(() => parseJson(nested(jsonDepthMax + 2)), /nested too deeply/);
  assert.throws(() => parseJson('['.repeat(1_000_000)), /nested too deeply/);
  assert.throws(() => parseJson(`"${'x'.repeat(999)}`), SyntaxError);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('[', '{', '"', '\\', 'a') }), (text) => {
      const value = { text, list: Array.from({ length: 300 }, () => [text]) };
      assert.deepEqual(parseJson(JSON.stringify(value)), value);
    }),
    { numRuns: propertyRuns(300) },
  );
});
