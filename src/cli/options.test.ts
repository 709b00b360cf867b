import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  durationSeconds,
  expectedRevision,
  futureTime,
  oneOf,
  pairs,
  pastTime,
  wholeNumber,
} from './options.ts';

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

test('times are durations from now, or dates', () => {
  const hourMs = 3_600_000;
  const isNear = (time: Date, offsetMs: number): boolean =>
    Math.abs(time.getTime() - Date.now() - offsetMs) < 60_000;
  assert.ok(isNear(pastTime('a', '12h'), -12 * hourMs));
  assert.ok(isNear(futureTime('a', '12h'), 12 * hourMs));
  assert.ok(isNear(futureTime('a', '90'), 90_000));
  assert.equal(pastTime('a', '2026').toISOString(), '2026-01-01T00:00:00.000Z');
  assert.equal(pastTime('a', undefined), undefined);
  for (const text of ['', 'soon', '99999999999w']) {
    assert.throws(() => pastTime('a', text), /--a takes a duration such as 12h, or a date/);
    assert.throws(
      () => futureTime('a', text),
      /--a takes a duration such as 12h or 30d, or a date/,
    );
  }
});

test('a choice names all known values', () => {
  const sizeOf = oneOf(['small', 'medium', 'large']);
  assert.equal(sizeOf('size', 'medium'), 'medium');
  assert.equal(sizeOf('size', undefined), undefined);
  assert.throws(() => sizeOf('size', 'huge'), /--size takes small, medium, or large, not 'huge'/);
});
