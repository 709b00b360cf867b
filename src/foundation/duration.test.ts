import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from './duration.ts';

test('a string needs units, and a number is milliseconds', () => {
  const given = ['250ms', '90s', '15m', '1.5h', '1h30m', '1h 30m', '30d', '2w', '0s', 1_500, 0];
  assert.deepEqual(
    given.map(parseDuration),
    [
      250, 90_000, 900_000, 5_400_000, 5_400_000, 5_400_000, 2_592_000_000, 1_209_600_000, 0, 1_500,
      0,
    ],
  );
});

test('a string without a valid unit, or any other value, is invalid', () => {
  const texts = ['', ' ', '90', '1y', '-1s', 's', '1.h', '1s2', `${'9'.repeat(17)}w`];
  for (const given of [...texts, -1, Number.NaN, Number.POSITIVE_INFINITY, null, true, [1]]) {
    assert.equal(parseDuration(given), undefined, String(given));
  }
});
