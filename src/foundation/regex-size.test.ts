import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { propertyRuns } from '../testing/property-runs.ts';
import { regexSize } from './regex-size.ts';

function compiledSize(pattern: string): number {
  try {
    return RE2JS.compile(pattern).programSize();
  } catch {
    return 0;
  }
}

test('the estimated size of a pattern is at least that of the compiled one', () => {
  const part = fc.constantFrom(
    'a',
    '.',
    '(',
    ')',
    '(?:',
    '|',
    '*',
    '+?',
    '?',
    '{3}',
    '{2,}',
    '{1,4}',
    '[a-z]',
    '[^]x]',
    '\\d',
    '\\pL',
    '\\x{41}',
    '\\b',
    '^',
    '$',
    '(?i)',
    '[[:alpha:]]',
    '{',
    '}',
    '\\Qa{9}\\E',
  );
  fc.assert(
    fc.property(fc.string({ unit: part, maxLength: 25 }), (pattern) => {
      assert.ok(regexSize(pattern) >= compiledSize(pattern), pattern);
    }),
    { numRuns: propertyRuns(3_000) },
  );
  assert.ok(regexSize('(a{30}){30}') >= compiledSize('(a{30}){30}'));
  assert.ok(regexSize('[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}') < 200);
});
