import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compareSequences, isSequence } from './sequence.ts';

test('sequences are ordered as numbers, however large, and not as strings', () => {
  const part = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(part, part, part, part, (a, b, c, d) => {
      const expected = a === c ? b - d : a - c;
      assert.equal(
        Math.sign(compareSequences(`${a}-${b}`, `${c}-${d}`)),
        Math.sign(Number(expected)),
      );
    }),
  );
  assert.equal(compareSequences('7', '7-0'), 0);
});

test('a sequence consists of one or two numbers', () => {
  for (const text of ['0', '42', '1700000000000-3']) assert.ok(isSequence(text), text);
  for (const text of ['', '-1', '1-', 'x', '1-2-3', '9'.repeat(21)]) assert.ok(!isSequence(text));
});
