import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../testing/property-runs.ts';
import { jsonDepthMax, jsonText, parseJson } from './parse-json.ts';

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

test('values of any depth become the text that JSON.stringify returns for flat ones', () => {
  const at = new Date(0);
  const odd = {
    at,
    toJSON: 1,
    none: undefined,
    list: [undefined, null, at, '"'],
    'a"b': {},
    empty: [],
  };
  assert.equal(jsonText(odd), JSON.stringify(odd));
  const deep = nested(100_000);
  // A date is enough for `JSON.stringify` to exhaust the stack.
  const text = jsonText({ ...odd, deep: JSON.parse(deep) as unknown });
  assert.ok(text === `${JSON.stringify(odd).slice(0, -1)},"deep":${deep}}`);
  const endless: { self?: unknown } = {};
  endless.self = endless;
  assert.throws(() => jsonText(endless), TypeError);
});
