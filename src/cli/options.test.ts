import assert from 'node:assert/strict';
import { test } from 'node:test';
import { durationSeconds, expectedRevision, pairs, wholeNumber } from './options.ts';

test('durations are seconds, or have a unit', () => {
  const seconds = ['90', '90s', '15m', '12h', '30d', '2w'].map((text) =>
    durationSeconds('a', text),
  );
  assert.deepEqual(seconds, [90, 90, 900, 43_200, 2_592_000, 1_209_600]);
  for (const text of ['', '1y', '-1', '1.5h', 'd', '99999999999999999w']) {
    assert.throws(() => durationSeconds('a', text), /--a takes seconds or a duration/);
  }
});

test('whole numbers are whole, and no larger than a number can be', () => {
  assert.deepEqual(
    ['0', '12', undefined].map((text) => wholeNumber('a', text)),
    [0, 12, undefined],
  );
  for (const text of ['', '-1', '1e3', '1.5', '0x1', '9'.repeat(20)]) {
    assert.throws(() => wholeNumber('a', text), /--a takes a whole number/);
  }
});

test('expected revisions are words or numbers', () => {
  const known = ['any', 'none', 'exists', '7', undefined];
  assert.deepEqual(known.map(expectedRevision), ['any', 'none', 'exists', 7, undefined]);
  for (const text of ['', '-1', 'some']) assert.throws(() => expectedRevision(text), /--expected/);
});

test('a pair ends its name at the first equals sign', () => {
  assert.deepEqual(pairs('a', ['b=c=d', 'e=']), { b: 'c=d', e: '' });
  assert.throws(() => pairs('a', ['=b']), /--a takes name=value/);
});
