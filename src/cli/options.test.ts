import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  durationMs,
  expectedRevision,
  futureTime,
  oneOf,
  pairs,
  pastTime,
  nonNegativeInteger,
} from './options.ts';

test('the error for an invalid duration names the option', () => {
  assert.equal(durationMs('a', '15m'), 900_000);
  assert.throws(() => durationMs('a', '90'), /--a takes a duration such as 30s, .* not '90'/);
});

test('rejects negative, fractional and unsafe integers', () => {
  assert.deepEqual(
    ['0', '12', undefined].map((text) => nonNegativeInteger('a', text)),
    [0, 12, undefined],
  );
  for (const text of ['', '-1', '1e3', '1.5', '0x1', '9'.repeat(20)]) {
    assert.throws(() => nonNegativeInteger('a', text), /--a takes a non-negative integer/);
  }
});

test('an expected revision is a keyword or a number', () => {
  const known = ['any', 'none', 'exists', '7', undefined];
  assert.deepEqual(known.map(expectedRevision), ['any', 'none', 'exists', 7, undefined]);
  for (const text of ['', '-1', 'some']) assert.throws(() => expectedRevision(text), /--expected/);
});

test('splits a pair at the first equals sign', () => {
  assert.deepEqual(pairs('a', ['b=c=d', 'e=']), { b: 'c=d', e: '' });
  assert.throws(() => pairs('a', ['=b']), /--a takes name=value/);
});

test('parses a time from a duration or a date', () => {
  const hourMs = 3_600_000;
  const isNear = (time: Date, offsetMs: number): boolean =>
    Math.abs(time.getTime() - Date.now() - offsetMs) < 60_000;
  assert.ok(isNear(pastTime('a', '12h'), -12 * hourMs));
  assert.ok(isNear(futureTime('a', '12h'), 12 * hourMs));
  assert.equal(pastTime('a', '2026-01-02').toISOString(), '2026-01-02T00:00:00.000Z');
  assert.equal(pastTime('a', undefined), undefined);
  for (const text of ['', '90', 'soon', '9999999999w']) {
    assert.throws(() => pastTime('a', text), /--a takes a duration .* or a date and time/);
    assert.throws(() => futureTime('a', text), /--a takes a duration .* or a date and time/);
  }
});

test('the error for an unknown choice lists all known values', () => {
  const sizeOf = oneOf(['small', 'medium', 'large']);
  assert.equal(sizeOf('size', 'medium'), 'medium');
  assert.equal(sizeOf('size', undefined), undefined);
  assert.throws(() => sizeOf('size', 'huge'), /--size takes small, medium, or large, not 'huge'/);
});
