import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../testing/property-runs.ts';
import { matchesGlob } from './matches-glob.ts';

test('a pattern matches like the equivalent regular expression', () => {
  const part = fc.string({ unit: fc.constantFrom('a', 'b', ':', '*') });
  fc.assert(
    fc.property(part, fc.string({ unit: fc.constantFrom('a', 'b', ':') }), (pattern, text) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(text);
      assert.equal(matchesGlob(pattern, text), expected);
    }),
    { numRuns: propertyRuns(1_000) },
  );
});
