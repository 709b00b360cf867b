import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPageMeter, pageLimits, rowBytes, toPageBound } from './page-bound.ts';

const row = { payload: 'x'.repeat(40), meta: 'y'.repeat(10) };

test('a row counts two bytes for each character', () => {
  assert.equal(rowBytes(row), 100);
});

test('a page ends with the row that reaches the number of rows or the size', () => {
  const page = (bound: { limit: number; bytesMax: number }): number => {
    const isLast = createPageMeter(bound);
    let rows = 1;
    while (!isLast(row)) rows += 1;
    return rows;
  };
  assert.equal(page({ limit: 7, bytesMax: 1e6 }), 7);
  assert.equal(page({ limit: 7, bytesMax: 300 }), 3);
  assert.equal(page({ limit: 7, bytesMax: 301 }), 4);
  assert.equal(page({ limit: 7, bytesMax: 1 }), 1);
});

test('page sizes of callers stay within the limits', () => {
  const { eventsDefault, eventsMax, bytesDefault } = pageLimits;
  assert.deepEqual(toPageBound({}), { limit: eventsDefault, bytesMax: bytesDefault });
  assert.deepEqual(toPageBound({ pageSize: 1e9, pageBytes: 1e9 }), {
    limit: eventsMax,
    bytesMax: bytesDefault,
  });
  assert.deepEqual(toPageBound({ pageSize: 0, pageBytes: 5 }), { limit: 1, bytesMax: 5 });
  assert.equal(toPageBound({ pageSize: Number.NaN }).limit, eventsDefault);
});
