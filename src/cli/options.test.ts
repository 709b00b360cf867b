import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  durationMs,
  expectedRevision,
  futureTime,
  pairs,
  pastTime,
  wholeNumber,
} from './options.ts';

test('an invalid duration is reported with its option', () => {
  assert.equal(durationMs('a', '15m'), 900_000);
  assert.throws(() => durationMs('a', '90'), /--a takes a duration such as 30s, .* not '90'/);
});

test('times are durations from now, or dates', () => {
  assert.equal(pastTime('a', '1h', 7_200_000), '1970-01-01T01:00:00.000Z');
  assert.equal(futureTime('a', '1h', 0), '1970-01-01T01:00:00.000Z');
  assert.equal(pastTime('a', '2026-01-02', 0), '2026-01-02T00:00:00.000Z');
  for (const text of ['90', 'soon', '9999999999w']) {
    assert.throws(() => futureTime('a', text, 0), /--a takes a duration .* or a date and time/);
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
