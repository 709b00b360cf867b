import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { parsePosition, startPosition, toPosition, toSequence, type Position } from './position.ts';

const sequence = fc.oneof(fc.nat(), fc.maxSafeNat());

describe('position', () => {
  test('string order equals numeric order', () => {
    fc.assert(
      fc.property(sequence, sequence, (a, b) => {
        assert.equal(toPosition(a) < toPosition(b), a < b);
        assert.equal(toPosition(a) === toPosition(b), a === b);
      }),
    );
  });

  test('converts back to its number, and parses as a position', () => {
    fc.assert(
      fc.property(sequence, (number) => {
        const position = toPosition(number);
        assert.equal(toSequence(position), number);
        assert.equal(parsePosition(position), position);
      }),
    );
    assert.equal(toSequence(toPosition(Number.MAX_SAFE_INTEGER)), Number.MAX_SAFE_INTEGER);
  });

  test('the start position sorts before all others', () => {
    assert.equal(startPosition, toPosition(0));
    assert.ok(startPosition < toPosition(1));
  });

  test('rejects every other string, and truncates it in the error', () => {
    for (const text of [
      '',
      '0',
      '00000000000003E8',
      '00000000000003e8 ',
      '0x000000000003e8',
      '0020000000000000',
      'ffffffffffffffff',
      'x'.repeat(10_000),
    ]) {
      assert.throws(
        () => parsePosition(text),
        (error) => hasCode(error, 'POSITION_INVALID') && error.message.length < 100,
      );
      assert.throws(
        () => toSequence(text as Position),
        (error) => hasCode(error, 'POSITION_INVALID'),
      );
    }
  });
});
