import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dueEndMs, dueMs } from './due-date.ts';

test('accepts dates and date-times, with and without a zone', () => {
  for (const [text, iso] of [
    ['2026-10-20', '2026-10-20T00:00:00.000Z'],
    ['2026-10-20T15:30', '2026-10-20T15:30:00.000Z'],
    ['2026-10-20T15:30:10', '2026-10-20T15:30:10.000Z'],
    ['2026-10-20T15:30:10.5', '2026-10-20T15:30:10.500Z'],
    ['2026-10-20T15:30:10.123456789Z', '2026-10-20T15:30:10.123Z'],
    ['2026-10-20T15:30Z', '2026-10-20T15:30:00.000Z'],
    ['2026-10-20T15:30+02:00', '2026-10-20T13:30:00.000Z'],
    ['2026-10-20T15:30:00-05', '2026-10-20T20:30:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29', '2000-02-29T00:00:00.000Z'],
    ['0050-01-01', '0050-01-01T00:00:00.000Z'],
  ] as const) {
    assert.equal(dueMs(text), Date.parse(iso), text);
  }
});

test('a date ends with the last millisecond of its day, a date-time at its time', () => {
  assert.equal(dueEndMs('2026-10-20'), Date.parse('2026-10-20T23:59:59.999Z'));
  assert.equal(dueEndMs('2026-10-20T15:30Z'), Date.parse('2026-10-20T15:30:00Z'));
  assert.equal(dueEndMs('2026-02-29'), undefined);
});

test('rejects dates and times that do not exist', () => {
  for (const text of [
    '2026-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-13-01',
    '2026-00-10',
    '2026-01-00',
    '2026-10-20T24:00',
    '2026-10-20T23:60',
    '2026-10-20T23:00:60',
    '2026-10-20T23:00+24:00',
    '2026-10-20T23:00+02:60',
    '2026-10-20T',
    '2026-10-20 23:00',
    '2026-10-20Z',
    '2026-10-20T23',
    '2026-1-2',
    '20261020',
    '２０２６-10-20',
    '+002026-10-20',
    '2026-10-20\n',
    'tomorrow',
    '',
  ]) {
    assert.equal(dueMs(text), undefined, text);
  }
});

test('accepts exactly the days of the calendar', () => {
  const number = (max: number) => fc.integer({ min: 0, max });
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 9_999 }), number(14), number(33), (y, m, d) => {
      const two = (each: number): string => String(each).padStart(2, '0');
      const text = `${String(y).padStart(4, '0')}-${two(m)}-${two(d)}`;
      // `Date` is the reference: it changes the parts of a day that does not exist.
      const date = new Date(Date.UTC(y, m - 1, d));
      const isReal = date.getUTCMonth() === m - 1 && date.getUTCDate() === d && m >= 1 && m <= 12;
      assert.equal(dueMs(text), isReal ? date.getTime() : undefined, text);
    }),
    { numRuns: 2_000 },
  );
});
